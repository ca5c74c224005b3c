"""Names that people give, as texts of menus and buttons."""

from __future__ import annotations


def plain(text: str) -> str:
    """What a menu would take for a key is part of the name."""
    return text.replace("&", "&&")
