"""Rows of the transcript: text, code, tables, formulas, buttons and notices."""
