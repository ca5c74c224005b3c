"""Texts of the settings page about memory and storage."""

from __future__ import annotations

from typing import Final

from app.words import computer

MEMORY: Final = "In memory"
KEEP: Final = "Keep Chats Ready on Disk"
KEEP_NOTE: Final = (
    "After a restart, chats continue without being read again. Only you can read the files, and"
    f" they stay on {computer.THIS_COMPUTER}."
)
LIMIT: Final = "Disk space"
AUTOMATIC: Final = "Auto"
USED: Final = "On disk, all models"
WRITTEN: Final = "Written today, all models"
NOTHING: Final = "Nothing yet"
MEASURING: Final = "Measuring…"
CLEAR: Final = "Remove from Disk…"
CLEAR_NOW: Final = "Remove"  # button that confirms it
CLEAR_NAME: Final = "Remove the state of all chats from disk…"
CLEAR_NOTE: Final = (
    "Your chats stay, and so does what is in memory. Any other chat is read once more when you "
    "continue it."
)
CLEAR_QUESTION: Final = "Remove the state of all chats from disk?"

PICTURES_NOTE: Final = (
    "The pictures that are attached in your chats. Each is deleted after the last chat and the "
    "last daily backup with it."
)

DATA_FOLDER: Final = "Data folder"
DATA_NOTE: Final = "Contains your chats, their pictures and daily backups."
MOVE: Final = "Move…"
MOVE_TITLE: Final = "Move Data Folder"
MOVING: Final = "Your chats are copied and verified. Then Rejoinder uses the new folder."
BUSY: Final = "An answer or an import is running."
BUSY_ADVICE: Final = "Move the data folder when it has ended."
BACKUPS: Final = "Daily backups"
NO_BACKUPS: Final = "None yet"
DELETE_OLD: Final = "Delete Old Copy…"
DELETE_OLD_QUESTION: Final = "Delete the old copy of your chats?"
DELETE: Final = "Delete"


def old_copy(folders: str) -> str:
    return f"The old copy is still in {folders}."


def delete_old_note(folder: str) -> str:
    return f"Your chats are in {folder}. Only the copy from before the move is deleted."


def backups(count: int, size: str) -> str:
    return f"{count} ({size})" if count else NO_BACKUPS


def gigabytes(number: int) -> str:
    """Return the text of a choice of disk space; 0 stands for automatic."""
    return f"{number} GB" if number else AUTOMATIC


def line(*, size: str, num_chats: int) -> str:
    """Return the line at the foot of the sidebar."""
    return f"{_chats(num_chats)} in memory · {size}"


def line_tip(share: str) -> str:
    """Return the tooltip of that line. share: the memory in use and the most that may be used."""
    return f"These chats continue without being read again.\n{share} of memory used"


def share(*, size: str, budget: str) -> str:
    return f"{size} of {budget}"


def used_on_disk(*, size: str, budget: str, own: str, num_chats: int) -> str:
    """Return the disk space of all models, and the space and the chats of the loaded one.

    own: the space of the loaded model.
    """
    return f"{share(size=size, budget=budget)}, this model {own} ({_chats(num_chats)})"


def _chats(count: int) -> str:
    return "1 chat" if count == 1 else f"{count:,} chats"
