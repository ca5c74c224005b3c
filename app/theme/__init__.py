"""Looks: design tokens, palette and style sheet, fonts, icons."""
