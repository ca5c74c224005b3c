"""Texts of the list of recently deleted chats."""

from __future__ import annotations

from typing import Final

TITLE: Final = "Recently Deleted"
NOTE: Final = "Chats stay here for 30 days, then they are permanently deleted."
RESTORE: Final = "Restore"
DELETE_NOW: Final = "Delete Now…"
DONE: Final = "Done"
DELETE: Final = "Delete"  # button that confirms the deletion
NO_UNDO: Final = (
    "You can’t undo this. A copy stays in the daily backups until newer ones replace them."
)


def days_left(days: int) -> str:
    return "1 day left" if days == 1 else f"{days} days left"


def spoken(*, title: str, left: str) -> str:
    return f"{title}, {left}"


def question(*, title: str, count: int) -> str:
    """Return the question before chats are deleted for good. title: that of the only chat."""
    return (
        f"Permanently delete “{title}”?" if count == 1 else f"Permanently delete {count:,} chats?"
    )
