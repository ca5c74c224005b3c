"""The errors of the store, with the words that the user reads.

EngineError (engine)
└── StoreError
    ├── DatabaseNewerError          written by a newer Rejoinder
    ├── DatabaseLockedError         another program holds the file
    ├── DatabaseFullError           no space left
    │   └── DatabaseNoRoomError     no space left to open the database
    ├── DatabaseDamagedError        the file is damaged or no database
    ├── DatabaseFileError           the file cannot be opened, read or written
    ├── BackupError                 the daily backup cannot be written
    ├── ConversationMissingError    deleted for good
    ├── MessagesTakenError          an imported message has the id of another conversation's message
    └── AlreadyRunningError         another Rejoinder uses the data folder
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from app.store.room import NO_ROOM, is_full
from app.words import problems as words
from engine.errors import UserFixableError
from engine.problem import ProblemKind


class StoreError(UserFixableError):
    """Base class: the database of conversations cannot be used."""

    title = words.STORE


class DatabaseNewerError(StoreError):
    """A newer version of the app wrote the database; the file is left unchanged."""

    title = words.STORE_NEWER
    advice = words.STORE_NEWER_ADVICE


class DatabaseLockedError(StoreError):
    """Another program has locked the database file."""

    title = words.STORE_LOCKED
    advice = words.STORE_LOCKED_ADVICE


class DatabaseFullError(StoreError):
    """The disk is full; no part of the failed change was written."""

    title = words.STORE_FULL
    advice = words.STORE_FULL_ADVICE


class DatabaseNoRoomError(DatabaseFullError):
    """The disk is full, so the database cannot be opened at all. The file is unchanged."""

    title = words.STORE_NO_ROOM
    advice = words.STORE_NO_ROOM_ADVICE


class DatabaseDamagedError(StoreError):
    """The content of the database file is damaged, or the file is no database."""

    title = words.STORE_DAMAGED
    advice = words.STORE_DAMAGED_ADVICE
    kind = ProblemKind.DAMAGED


class DatabaseFileError(StoreError):
    """The database file cannot be opened, read or written."""

    title = words.STORE_FILE
    advice = words.STORE_FILE_ADVICE


class BackupError(StoreError):
    """The daily backup cannot be written. The database itself can be used."""

    title = words.BACKUP
    advice = words.BACKUP_ADVICE


class ConversationMissingError(StoreError):
    """The conversation was deleted for good."""

    title = words.CONVERSATION_MISSING


class MessagesTakenError(StoreError):
    """An imported conversation has ids of messages that belong to another conversation."""


class AlreadyRunningError(StoreError):
    """Another Rejoinder process uses the data folder."""

    title = words.ALREADY_RUNNING
    advice = words.ALREADY_RUNNING_ADVICE


# Mask: the low byte of an extended SQLite result code is the primary result code.
_PRIMARY_CODE = 0xFF
_FILE_CODES = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR}


def store_error(error: sqlite3.Error, path: Path) -> StoreError | None:
    """Return the StoreError for an SQLite error, or None for a programming error (bad SQL)."""
    # Errors raised by Python's sqlite3 module itself, not by SQLite, have no error code.
    code: int | None = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return None
    details = f"{error.sqlite_errorname}: {error}"
    if code == sqlite3.SQLITE_ERROR and "fts5" in str(error):
        code = sqlite3.SQLITE_CORRUPT  # a damaged search index may have no code of its own
    code &= _PRIMARY_CODE
    if code in _FILE_CODES and is_full(path.parent):
        code = sqlite3.SQLITE_FULL  # some files of SQLite have no code of their own for a full disk
    match code:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return DatabaseLockedError(words.locked(path), details=details)
        case sqlite3.SQLITE_FULL:
            return DatabaseFullError(words.no_space(path), details=details)
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return DatabaseDamagedError(words.not_understood(path), details=details)
        case (
            sqlite3.SQLITE_CANTOPEN
            | sqlite3.SQLITE_IOERR
            | sqlite3.SQLITE_PERM
            | sqlite3.SQLITE_READONLY
        ):
            return DatabaseFileError(words.cannot_use(path, str(error)), details=details)
        case _:
            return None


def file_error(error: OSError, path: Path, cause: str) -> StoreError:
    """Return the StoreError for an error of the operating system. `cause` is for the user."""
    if error.errno in NO_ROOM:
        return DatabaseFullError(words.no_space(path), details=str(error))
    return DatabaseFileError(cause, details=str(error))
