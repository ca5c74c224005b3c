"""Texts of menus and buttons, in which Qt reads a single & as the mark of a key."""

from __future__ import annotations


def plain(text: str) -> str:
    """Double each & in a text, so that Qt shows the character instead of underlining a letter."""
    return text.replace("&", "&&")


def shown(text: str) -> str:
    """Return the text of a menu entry or a button as the user reads it."""
    return text.replace("&&", "&")
