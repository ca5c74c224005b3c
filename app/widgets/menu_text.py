"""Escaping of user-given names for menus and buttons."""

from __future__ import annotations


def plain(text: str) -> str:
    """Double each & in text, so that Qt shows it instead of underlining the next letter."""
    return text.replace("&", "&&")
