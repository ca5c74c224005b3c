"""Every word that the window shows, by where it is seen: strings, and functions for words with values in them."""
