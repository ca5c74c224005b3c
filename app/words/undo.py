"""Names of the actions that the command Undo undoes, as they stand in the menu after “Undo”."""

from __future__ import annotations

from typing import Final

TYPING: Final = "Typing"
RENAME: Final = "Rename Chat"
DELETE_MESSAGE: Final = "Delete Message"
EDIT_MESSAGE: Final = "Edit Message"
EDIT_ANSWER: Final = "Edit Answer"
REGENERATE: Final = "Regenerate"
REMOVE_FILE: Final = "Remove File"
SHORTEN_FILE: Final = "Shorten File"
NEW_FOLDER: Final = "New Folder"
CHANGE_FOLDER: Final = "Change Folder"
DELETE_FOLDER: Final = "Delete Folder"
REPLACE_PRESET: Final = "Replace Preset"
DELETE_PRESET: Final = "Delete Preset"


def delete(count: int) -> str:
    return _chats("Delete", count)


def pin(count: int, *, pinned: bool) -> str:
    return _chats("Pin" if pinned else "Unpin", count)


def archive(count: int, *, archived: bool) -> str:
    return _chats("Archive" if archived else "Unarchive", count)


def move(count: int) -> str:
    return _chats("Move", count)


def duplicate(count: int) -> str:
    return _chats("Duplicate", count)


def undo(name: str) -> str:
    """Return the text of the command. `name` is empty if no action can be undone."""
    return f"Undo {name}".strip()


def undone(name: str) -> str:
    return f"Undone: {name}"


def _chats(verb: str, count: int) -> str:
    return f"{verb} Chat" if count == 1 else f"{verb} {count:,} Chats"
