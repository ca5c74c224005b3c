"""Texts of folders, archive and pins: rows of the sidebar, the sheet of a folder, toasts."""

from __future__ import annotations

from typing import Final

NEW_NAME: Final = "New Folder"  # name of a folder to which the user gave none
FOLDER: Final = "folder"  # said by screen readers after the name
OPEN: Final = "open"
CLOSED: Final = "closed"

# Section headings of the sidebar, in capitals.
PINNED: Final = "PINNED"
FOLDERS: Final = "FOLDERS"
ALL_CHATS: Final = "CHATS"
ARCHIVED_HEADING: Final = "ARCHIVED"

ARCHIVED: Final = "Archived"  # button that shows the archived chats
BACK_TO_CHATS: Final = "Back to Chats"
PINNED_STATE: Final = "pinned"

# The sheet of a folder.
SETTINGS_TITLE: Final = "Folder Settings"
NAME: Final = "Name"
COLOR: Final = "Color"
COLORS: Final = {
    "gray": "Gray",
    "blue": "Blue",
    "green": "Green",
    "orange": "Orange",
    "red": "Red",
    "purple": "Purple",
}
PRESET: Final = "Preset"
PRESET_OF_MODEL: Final = "The model’s default"
SYSTEM_PROMPT: Final = "System prompt"
SYSTEM_PROMPT_HINT: Final = "Instructions for chats in this folder"
FOR_NEW_CHATS: Final = "New chats in this folder start with these. Existing chats don’t change."
SAVE: Final = "Save"
CREATE: Final = "Create"

# Menus.
NO_FOLDER: Final = "No Folder"
NEW_FOLDER: Final = "New Folder…"
NEW_CHAT: Final = "New Chat in Folder"
RENAME: Final = "Rename"
FOLDER_SETTINGS: Final = "Folder Settings…"
EXPORT: Final = "Export Folder…"
DELETE: Final = "Delete Folder"

COPIED: Final = " (copy)"  # end of the title of a duplicated chat


def spoken(*, name: str, count: int, is_open: bool) -> str:
    """Return the text of a folder's row for screen readers."""
    return f"{name}, {FOLDER}, {chats(count)}, {OPEN if is_open else CLOSED}"


def chats(count: int) -> str:
    return "1 chat" if count == 1 else f"{count:,} chats"


def archived(count: int) -> str:
    """Return the text of the button that shows the archived chats."""
    return f"{ARCHIVED} ({count:,})"


def move_to(count: int) -> str:
    """Return the title of the menu with the folders, for one chat or for several selected ones."""
    return "Move to Folder" if count == 1 else f"Move {count:,} Chats to Folder"


def new_chat_in(name: str) -> str:
    """Return the heading of an empty chat in a folder."""
    return f"New chat in “{name}”"


def toast_archived(*, title: str, count: int) -> str:
    return f"Archived “{title}”" if count == 1 else f"Archived {chats(count)}"


def toast_unarchived(*, title: str, count: int) -> str:
    return f"Unarchived “{title}”" if count == 1 else f"Unarchived {chats(count)}"


def toast_moved(*, title: str, count: int, folder: str) -> str:
    """Return the text after a move. folder is empty if the chats were taken out of folders."""
    what = f"“{title}”" if count == 1 else chats(count)
    return f"Moved {what} to “{folder}”" if folder else f"Moved {what} out of the folder"


def toast_deleted_folder(name: str) -> str:
    return f"Deleted folder “{name}”. Its chats stay."


def toast_duplicated(*, title: str, count: int) -> str:
    return f"Duplicated “{title}”" if count == 1 else f"Duplicated {chats(count)}"


def toast_forked(title: str) -> str:
    return f"Forked “{title}”"


def copied_title(title: str) -> str:
    """Return the title of a chat that was duplicated from a chat with this title."""
    return title if title.endswith(COPIED) else f"{title}{COPIED}"
