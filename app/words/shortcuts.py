"""Texts of the settings page for keyboard shortcuts."""

from __future__ import annotations

from typing import Final

from app.words import computer

TAB: Final = "Shortcuts"
FIND: Final = "Search commands and keys"
NONE: Final = "None"
PRESS: Final = "Type keys…"
RESET_ALL: Final = "Reset All"
NOT_FOUND: Final = "No command or key matches."
NOTE: Final = (
    "Click a shortcut and type the new keys. Delete removes the shortcut, Esc keeps it. Keys in "
    "gray can’t be changed."
)
_MODIFIER: Final = "⌘, ⌥ or ⌃" if computer.IS_MAC else "Ctrl or Alt"


def taken(keys: str, command: str) -> str:
    return f"{keys} is the shortcut of “{command}”. Type other keys, or change that one first."


def types(keys: str) -> str:
    return f"{keys} alone is needed for writing. Type it together with {_MODIFIER}."


def edits(keys: str) -> str:
    return f"{keys} is needed for writing and for going to chats. Type other keys."


def not_usable(keys: str) -> str:
    return f"{keys or 'This key'} can’t be a shortcut. Type other keys."


def spoken(*, command: str, keys: str) -> str:
    return f"{command}: {keys}"


def reset(command: str) -> str:
    return f"Reset the shortcut of “{command}”"
