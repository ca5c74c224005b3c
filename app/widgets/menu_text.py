"""Escaping of names that the user has given, for menus and buttons."""

from __future__ import annotations


def plain(text: str) -> str:
    """Double each & in a text, so that Qt shows the character instead of underlining a letter."""
    return text.replace("&", "&&")
