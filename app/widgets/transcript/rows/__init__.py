"""What a message is made of: text, code, tables, formulas, buttons, notes."""
