"""Texts of the settings page about memory and storage."""

from __future__ import annotations

from typing import Final

MEMORY: Final = "In memory"
KEEP: Final = "Keep Chats Ready on Disk"
KEEP_NOTE: Final = (
    "After a restart, chats continue without being read again. Only you can read the files, and they"
    " stay on this computer."
)
LIMIT: Final = "Disk space"
AUTOMATIC: Final = "Auto"
USED: Final = "On disk"
WRITTEN: Final = "Written today"
NOTHING: Final = "Nothing yet"
CLEAR: Final = "Clear"
CLEAR_NAME: Final = "Clear the state of chats on disk"
CLEAR_NOTE: Final = "Your chats stay. They are read once more when they continue."


def gigabytes(number: int) -> str:
    """Return the text of a choice of disk space; 0 stands for automatic."""
    return f"{number} GB" if number else AUTOMATIC


def used(*, size: str, budget: str, num_chats: int) -> str:
    return f"{size} of {budget}, {_chats(num_chats)}"


def used_on_disk(*, size: str, budget: str, num_chats: int) -> str:
    """Return the disk space of all models, and the number of chats of the loaded one."""
    return f"{size} of {budget}, {_chats(num_chats)} with this model"


def _chats(count: int) -> str:
    return "1 chat" if count == 1 else f"{count:,} chats"
