"""The app's appearance: design tokens, palette, style sheets, fonts and icons."""
