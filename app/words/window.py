"""Texts of the window around the chat: toolbar, sidebar, empty chat, find bar and toasts."""

from __future__ import annotations

from typing import Final

from app.words import commands, computer

APP_NAME: Final = "Rejoinder"

# Texts of the toolbar.
TITLE_FIELD: Final = "New title"

# Texts of the sidebar. Section headings are in capitals.
CHATS: Final = "Chats"
TODAY: Final = "TODAY"
YESTERDAY: Final = "YESTERDAY"
PREVIOUS_7_DAYS: Final = "PREVIOUS 7 DAYS"
MONTHS: Final = (
    "JANUARY",
    "FEBRUARY",
    "MARCH",
    "APRIL",
    "MAY",
    "JUNE",
    "JULY",
    "AUGUST",
    "SEPTEMBER",
    "OCTOBER",
    "NOVEMBER",
    "DECEMBER",
)
NEW_TITLE: Final = "New chat"  # title of a chat without messages
# States of a chat. Screen readers say the state after the title of the chat.
ANSWERING: Final = "answering"
ANSWERS_PROGRAM: Final = "Answering another program"
NEW_ANSWER: Final = "new answer"
KEPT_READY: Final = f"“{commands.KEEP_READY}” is on"
# Accessible name of the model's progress bar, and the state before there is progress.
LOADING: Final = "Loading"

# Texts of the search over all chats.
SEARCH_FIELD: Final = "Search"
SEARCH_RESULTS: Final = "Search results"
CLEAR_SEARCH: Final = "End Search"
YOU: Final = "You"  # author of a found message
ANSWER: Final = "Answer"  # author of a found message

# Texts of an empty chat.
QUESTION: Final = "What are you working on?"
RECENT: Final = "RECENT"

# Texts of the find bar.
FIND_FIELD: Final = "Find in chat"
CLOSE_FIND: Final = "Close Find"
NOT_FOUND: Final = "Not found"

# Texts of notices and toasts.
CLOSE: Final = "Close"
SHOW: Final = "Show"  # button that opens the first imported chat
SHOW_ALL: Final = "Show All"  # button that lists all reasons
OPEN: Final = "Open"  # button that opens the chat whose answer has finished
# button that opens a folder in the system's file manager
SHOW_FOLDER: Final = "Show in Finder" if computer.IS_MAC else "Show Folder"
SHOW_LOG: Final = "Show Log"  # button of the notice after a crash

FORKED: Final = " (fork)"  # end of the title of a forked chat


def nothing_found(words: str) -> str:
    return f"No chat contains “{words}”."


def hits_spoken(*, title: str, count: int) -> str:
    """Return the title of a chat and the number of its found messages, for screen readers."""
    messages = "1 message" if count == 1 else f"{count:,} messages"
    return f"{title}, {messages}" if count else title


def hit_spoken(*, author: str, text: str) -> str:
    return f"{author}: {text}"


def forked_title(title: str) -> str:
    """Return the title of a chat that was forked from a chat with this title."""
    return title if title.endswith(FORKED) else f"{title}{FORKED}"


def in_menu(title: str, max_len: int) -> str:
    """Return a title for a menu, cut to max_len characters. A single & would mark a key."""
    shown = title if len(title) <= max_len else title[: max_len - 1].rstrip() + "…"
    return shown.replace("&", "&&")


def title_button(title: str) -> str:
    return f"Title: {title}. Rename"


def model_button(name: str) -> str:
    return f"Model: {name}"


def footer(*, name: str, state: str) -> str:
    return f"Model {name}, {state}. Choose another"


def footer_tip(name: str) -> str:
    return f"{name}: choose another model"


def month(number: int, year: int | None) -> str:
    """Return the heading of a month in the sidebar. year is None for the current year."""
    name = MONTHS[number - 1]
    return name if year is None else f"{name} {year}"


def continue_with(title: str) -> str:
    return f"Continue {title}"


def found(*, number: str, total: str) -> str:
    return f"{number} of {total}"


def has_finished(title: str) -> str:
    return f"“{title}” has finished"


def saved_as(file_name: str) -> str:
    return f"Saved as “{file_name}”."


def replaced_preset(name: str) -> str:
    return f"Replaced preset “{name}”"


def deleted_preset(name: str) -> str:
    return f"Deleted preset “{name}”"


def deleted_chat(title: str) -> str:
    return f"Deleted “{title}”"


def deleted_chats(count: int) -> str:
    return f"Deleted {count:,} chats"


def deleted_messages(count: int) -> str:
    return "Deleted the message" if count == 1 else f"Deleted {count:,} messages"
