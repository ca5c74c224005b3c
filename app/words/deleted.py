"""Texts of the list of recently deleted chats and folders."""

from __future__ import annotations

from typing import Final

TITLE: Final = "Recently Deleted"
NOTE: Final = "Chats and folders stay here for 30 days, then they are permanently deleted."
RESTORE: Final = "Restore"
DELETE_NOW: Final = "Delete Now…"
DONE: Final = "Done"
DELETE: Final = "Delete"  # button that confirms the deletion


def days_left(days: int) -> str:
    return "1 day left" if days == 1 else f"{days} days left"


def spoken(*, title: str, left: str, is_folder: bool) -> str:
    """Return the text of a row for screen readers."""
    return f"{title}, folder, {left}" if is_folder else f"{title}, {left}"


def question(*, title: str, count: int, folders: int) -> str:
    """Return the question before items are deleted for good.

    title: that of the only item. folders: how many of the items are folders.
    """
    if count == 1:
        return f"Permanently delete “{title}”?"
    chats = count - folders
    parts = ((chats, "1 chat", f"{chats:,} chats"), (folders, "1 folder", f"{folders:,} folders"))
    named = [one if number == 1 else several for number, one, several in parts if number]
    return f"Permanently delete {' and '.join(named)}?"


def no_undo(*, folders: int, count: int, in_backups: int) -> str:
    """Return the sentences below the question. in_backups: items that a daily backup contains."""
    other = "Other chats" if folders < count else "Chats"
    stay = f"{other} that were in a deleted folder are kept. " if folders else ""
    copied = "A copy" if in_backups == count else "A copy of some of them"
    backup = f" {copied} stays in the daily backups until newer ones replace them."
    return f"{stay}You can’t undo this.{backup if in_backups else ''}"
