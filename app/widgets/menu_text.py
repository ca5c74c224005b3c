"""Escaping of names that the user has given, for menus and buttons."""

from __future__ import annotations


def plain(text: str) -> str:
    """Double each & in a text: Qt then shows it, instead of underlining the next letter."""
    return text.replace("&", "&&")
