"""What can go wrong with the database, in words for a person.

UserFixableError (engine)
└── StoreError
├── DatabaseNewerError          written by a newer Rejoinder
├── DatabaseLockedError         another program holds the file
├── DatabaseFullError           no space left
├── DatabaseDamagedError        the file's content makes no sense
├── DatabaseFileError           the file cannot be opened, read or written
├── ConversationMissingError    deleted for good
└── AlreadyRunningError         another Rejoinder uses the data folder
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from engine.errors import UserFixableError


class StoreError(UserFixableError):
    """The conversations on disk could not be used."""

    title = "Your conversations could not be used."


class DatabaseNewerError(StoreError):
    """The database is from a newer version; it is left as it is."""

    title = "These conversations were saved by a newer Rejoinder."
    advice = "Install the newer version again, or choose another folder with --data-dir."


class DatabaseLockedError(StoreError):
    """Another program holds the database."""

    title = "Your conversations are in use by another program."
    advice = "Close the other program, then try again."


class DatabaseFullError(StoreError):
    """The disk is full; nothing of the failed change was written."""

    title = "The disk is full, so the conversation was not saved."
    advice = "Free some space: what is on screen is saved with the next change."


class DatabaseDamagedError(StoreError):
    """The database's content makes no sense."""

    title = "The file with your conversations is damaged."
    advice = "Restart Rejoinder: it keeps the damaged file aside and starts a new one."


class DatabaseFileError(StoreError):
    """The database cannot be opened, read or written."""

    title = "Your conversations could not be read or saved."
    advice = "Check the disk and the folder's permissions, then try again."


class ConversationMissingError(StoreError):
    """The conversation is gone."""

    title = "This conversation is not there any more."


class AlreadyRunningError(StoreError):
    """Another Rejoinder uses the data folder."""

    title = "Rejoinder is already running with this data folder."
    advice = "Use the open window, or choose another folder with --data-dir."


_PRIMARY_CODE = 0xFF  # extended result codes carry the primary one in their low byte


def store_error(error: sqlite3.Error, path: Path) -> StoreError | None:
    """The error in words for a person; None for a mistake of ours, such as wrong SQL."""
    # sqlite3's own complaints, raised without asking SQLite, carry no code.
    code: int | None = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return None
    details = f"{error.sqlite_errorname}: {error}"
    match code & _PRIMARY_CODE:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return DatabaseLockedError(f"{path} is locked.", details=details)
        case sqlite3.SQLITE_FULL:
            return DatabaseFullError(f"There is no space left for {path}.", details=details)
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return DatabaseDamagedError(f"{path} can't be understood.", details=details)
        case (
            sqlite3.SQLITE_CANTOPEN
            | sqlite3.SQLITE_IOERR
            | sqlite3.SQLITE_PERM
            | sqlite3.SQLITE_READONLY
        ):
            return DatabaseFileError(f"{path} can't be used: {error}.", details=details)
        case _:
            return None
