"""Texts about the documents of a folder, which new chats in it begin with."""

from __future__ import annotations

from typing import Final

from app.words import commands, folders, units

DOCUMENTS: Final = "Documents"
OPEN_SHEET: Final = "Documents…"
ADD: Final = "Add…"
ADD_TITLE: Final = "Add Documents"
REMOVE: Final = "Remove"
OPEN_TEXT: Final = "Show Text"
READ_AGAIN: Final = "Read Again"
PAUSE: Final = "Pause"
RESUME: Final = "Resume"
DONE: Final = "Done"
NOTE: Final = (
    "New chats in this folder begin with these files, so the model reads them first. "
    "Existing chats keep what they were read with."
)
NONE: Final = "No documents yet. Choose files, or drop them here."
GONE_NOTE: Final = "The file is gone. Rejoinder keeps its text."

# States of one document, in its row.
OPENING: Final = "opening"
WAITING: Final = "not read yet"
READING: Final = "being read"
READY: Final = "ready"
ON_DISK: Final = "ready on disk"
NO_ROOM: Final = "no room in the context"
CHANGED: Final = "changed on disk"
GONE: Final = "file is gone"

# States of all documents.
NO_MODEL: Final = "no model is loaded"
PAUSED: Final = "paused"
READING_OFF: Final = f"read with the first message: {commands.READ_AHEAD} is off"
LATER: Final = "waiting to be read"
NO_MEMORY: Final = "no room in the memory for chats, so each new chat reads them"

# The problem of a first message that does not fit behind the documents.
MESSAGE_TOO_LONG: Final = "The documents and this message are too long for the model."
MESSAGE_TOO_LONG_ADVICE: Final = (
    "Begin without the documents, remove one, or choose a model with a longer context."
)

# The choice of an empty chat.
WITHOUT: Final = "Without Documents"
WITH: Final = "With Documents"

# Names of undo steps.
UNDO_READ_AGAIN: Final = "Read Document Again"
NOT_READ: Final = "The document could not be read."


def title(folder: str) -> str:
    """Return the title of the sheet, and the name of the documents in the memory window."""
    return f"Documents of {folder}"


def documents(count: int) -> str:
    return "1 document" if count == 1 else f"{count:,} documents"


def change(count: int) -> str:
    """Return the button that opens the sheet, in the settings of the folder."""
    return f"{documents(count)}…"


def of_folder(count: int, folder: str) -> str:
    """Return the row above a first message. `folder` is empty if the folder is unknown."""
    return f"{documents(count)} of {folder}" if folder else documents(count)


def spoken_row(label: str, *, is_open: bool) -> str:
    """Return the row above a first message for screen readers."""
    return f"{label}, {folders.OPEN if is_open else folders.CLOSED}"


def add(count: int) -> str:
    """Return the name of the undo step."""
    return "Add Document" if count == 1 else f"Add {documents(count)}"


def remove(count: int) -> str:
    """Return the name of the undo step."""
    return "Remove Document" if count == 1 else f"Remove {documents(count)}"


def share_read(percent: str, time_left: str) -> str:
    """Return the progress of reading all documents."""
    left = f" · about {time_left} left" if time_left else ""
    return f"{percent} read{left}"


def leaves(number: int) -> str:
    """Return the number of tokens that the documents leave of the context."""
    return f"leaves {number:,} of the context"


def too_long(model_name: str) -> str:
    return (
        f"too long for {model_name}: leaves nothing. "
        "Remove one, or choose a model with a longer context."
    )


def changed_note(num_behind: int) -> str:
    """Return the note on a changed file. num_behind: documents that are read after it."""
    first = "The file has changed on disk. Read Again takes its new text."
    last = "Existing chats keep the earlier one."
    if num_behind == 0:
        return f"{first} {last}"
    behind = "The document behind it is" if num_behind == 1 else f"The {num_behind:,} behind it are"
    return f"{first} {behind} then read again too. {last}"


def num_changed(count: int) -> str:
    return f"{count:,} changed on disk" if count else ""


def num_gone(count: int) -> str:
    if not count:
        return ""
    return "1 file is gone" if count == 1 else f"{count:,} files are gone"


def row_tip(count: int, state: str) -> str:
    """Return what the tip of a folder's row says about its documents."""
    return f"{documents(count)} · {state}" if state else documents(count)


def begins_with(count: int, folder: str, state: str) -> str:
    """Return the note in an empty chat that begins with documents."""
    line = f"Begins with {documents(count)} of {folder}"
    return f"{line}: {state}" if state else line


def begins_without(count: int, folder: str) -> str:
    """Return the note in an empty chat that begins without the documents of its folder."""
    return f"Begins without the {documents(count)} of {folder}"


def is_picture(name: str) -> str:
    return f"“{name}” is a picture. A folder can only have files with text as documents."


def already(name: str) -> str:
    return f"“{name}” is already a document of this folder."


def too_many(limit: int) -> str:
    return f"A folder can have up to {limit} documents."


def added(count: int, folder: str) -> str:
    """Return the toast after files were dropped on a folder's row."""
    return f"Added {documents(count)} to “{folder}”"


def spoken(name: str, details: str) -> str:
    """Return a row of the list for screen readers."""
    return f"{name}, {details}" if details else name


def num_tokens(number: int | None) -> str:
    return "" if number is None else units.tokens(number)
