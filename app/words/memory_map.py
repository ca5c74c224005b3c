"""Texts of the window about the memory and disk space of chats."""

from __future__ import annotations

from typing import Final

from app.words import folder_documents

TITLE: Final = "Memory & Storage"
MAP: Final = "Map"
TABLE: Final = "Table"
EMPTY: Final = (
    "No chat is in memory or on disk. A chat appears here when the loaded model has read it."
)
NO_MODEL: Final = "No model is loaded. Load one to see the chats that it has read."

# Columns of the table
CHAT: Final = "Chat"
TOKENS: Final = "Tokens"
IN_MEMORY: Final = "In memory"
ON_DISK: Final = "On disk"
STATE: Final = "State"
NOTHING: Final = "—"

# States of a chat, beside those in the list (words of state.py)
ACTIVE: Final = "Reading or answering"
KEPT: Final = "Kept in memory"

# Parts that are no chat in the list
PROGRAM: Final = "Chat of another program"
UNLISTED: Final = "Chat that is not in the list"
SHARED: Final = "Shared by several chats"
UNUSED: Final = "Work in progress"
OTHER_MODELS: Final = "Chats of other models"

END_KEEP: Final = "Stop Keeping"
MOVE: Final = "Move to Disk"
FORGET: Final = "Forget…"
FORGET_VERB: Final = "Forget"
OPEN: Final = "Open Chat"
NOTE: Final = (
    "No message is deleted. A chat on disk continues without being read again, a forgotten one is"
    " read once more."
)
FORGET_NOTE: Final = (
    "All messages stay. What was read is dropped from memory and disk, and is read once more when"
    " you continue."
)
NO_DISK: Final = "To move chats, turn on “Keep Chats Ready on Disk” in Settings, under Storage."

SHOW: Final = "Show Chats in Memory…"  # button in the settings


def summary(*, model: str, memory: str, budget: str, disk: str | None) -> str:
    """Return the line over the map. A size is empty if it is zero. disk: None if not known."""
    on_disk = "" if disk is None else f" and {disk or 'nothing'} on disk"
    chats = f"Chats take {memory or 'nothing'} of {budget} in memory{on_disk}."
    return f"The model takes {model}. {chats}" if model else chats


def budget(*, limit: str, num_chats: int) -> str:
    """Return the limit, and how many chats fit into it."""
    chats = (
        f"about {num_chats:,} chat{'' if num_chats == 1 else 's'}"
        if num_chats
        else "less than a chat"
    )
    return f"{limit}: {chats} of 8,000 tokens"


def automatic(size: str) -> str:
    return f"Automatic, {size}" if size else "Automatic"


def documents(folder: str) -> str:
    """Return the name of the documents of a folder; of a deleted one if it is empty."""
    return folder_documents.title(folder) if folder else "Documents of a deleted folder"


def sizes(*, memory: str, disk: str) -> str:
    """Return the bytes of one part, in the map."""
    on_disk = f"{disk} on disk" if disk else ""
    return " · ".join(part for part in (memory, on_disk) if part)


def described(*, title: str, tokens: str, memory: str, disk: str, state: str) -> str:
    """Return the line about one part of the map."""
    parts = [
        tokens,
        f"{memory} in memory" if memory else "",
        f"{disk} on disk" if disk else "",
        state,
    ]
    return f"{title}: {', '.join(part for part in parts if part)}"


def selected(count: int, *, memory: str, disk: str) -> str:
    """Return the line about several selected chats. A size is empty if it is zero."""
    return f"{count:,} chats selected: {memory or 'nothing'} in memory, {disk or 'nothing'} on disk"


def forget_question(title: str, count: int) -> str:
    return (
        f"Forget what was read of “{title}”?"
        if count == 1
        else f"Forget what was read of {count:,} chats?"
    )


def moving(title: str, count: int) -> str:
    what = f"“{title}” moves" if count == 1 else f"{count:,} chats move"
    return f"{what} to disk as soon as no answer is running."


def moved(title: str, count: int) -> str:
    what = f"“{title}” is" if count == 1 else f"{count:,} chats are"
    return f"{what} on disk now. To get a chat back into memory, open it and continue."


def not_moved(title: str, count: int) -> str:
    what = f"“{title}” stays" if count == 1 else f"{count:,} chats stay"
    return f"{what} in memory, because not all of it could be written to disk."
