"""Names of the actions that can be undone, as they stand in the menu after “Undo” and “Redo”."""

from __future__ import annotations

from typing import Final

TYPING: Final = "Typing"
RENAME: Final = "Rename Chat"
DELETE_MESSAGE: Final = "Delete Message"
DELETE_BRANCH: Final = "Delete Branch"
EDIT_MESSAGE: Final = "Edit Message"
EDIT_ANSWER: Final = "Edit Answer"
CANCEL_EDIT: Final = "Cancel Editing"
CONTINUE: Final = "Continue"
FORK: Final = "Fork Chat"
REGENERATE: Final = "Regenerate"
ASK_AGAIN: Final = "Ask Again"
SEND: Final = "Send"
REMOVE_FILE: Final = "Remove File"
RESIZE_PICTURE: Final = "Change Picture Size"
SHORTEN_FILE: Final = "Shorten File"
NEW_FOLDER: Final = "New Folder"
CHANGE_FOLDER: Final = "Change Folder"
DELETE_FOLDER: Final = "Delete Folder"
REPLACE_PRESET: Final = "Replace Preset"
DELETE_PRESET: Final = "Delete Preset"


def show_version(number: int) -> str:
    return f"Show Version {number:,}"


def attach(count: int) -> str:
    return "Attach File" if count == 1 else f"Attach {count:,} Files"


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


def redo(name: str) -> str:
    """Return the text of the command. `name` is empty if no action can be redone."""
    return f"Redo {name}".strip()


def undone(name: str) -> str:
    return f"Undone: {name}"


def redone(name: str) -> str:
    return f"Redone: {name}"


def _chats(verb: str, count: int) -> str:
    return f"{verb} Chat" if count == 1 else f"{verb} {count:,} Chats"
