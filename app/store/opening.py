"""Opening of the database: checked, migrated, rescued if it is damaged.

The database keeps a write-ahead log (WAL), so a killed process loses no committed change. A damaged
file is renamed, and what can be read of it goes into a new database (rescue.py).

The opening of a small file reads all of it, which finds damage before anything is written. A file
over ALWAYS_CHECKED_BYTES is not read at the opening. If the last run did not close it, or if it was
changed since then (condition.py), the app reads it afterwards on another thread (backups.py).
Damage is also found by the query that reads it, and by each backup, which checks its copy. The next
start then rescues the file. So does the start after a kill if SQLite would ignore a part of the log
(wal.py).

If the disk is full, the database is opened to read only. Before a file of an earlier format is
changed, a copy of it is made beside it, which stays until a later start has opened the new one.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.paths import free_name
from app.store.backups import backups_of
from app.store.condition import ConditionNote
from app.store.database import BUSY_TIMEOUT_S, Database
from app.store.errors import (
    DatabaseDamagedError,
    DatabaseFileError,
    DatabaseFullError,
    DatabaseNewerError,
    DatabaseNoRoomError,
    StoreError,
    file_error,
    store_error,
)
from app.store.rescue import Rescued, rescue
from app.store.schema import MIGRATIONS, Migration
from app.store.updates import copies_of, copy_before_update, remove_copies
from app.store.wal import Log
from app.words import problems as words

log = logging.getLogger(__name__)

# A file up to this size is checked at every start, in about 0.1 s.
ALWAYS_CHECKED_BYTES = 64_000_000
# A greater number of migrations is damage, not a newer version of the app.
_MAX_VERSION = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedDatabase:
    """A database that is ready for use.

    `kept_aside` is the new path of a damaged database that was replaced, or None, and `rescued` is
    what was saved of it.
    """

    database: Database
    kept_aside: Path | None = None
    rescued: Rescued | None = None


def open_database(path: Path, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> OpenedDatabase:
    """Open the database; create or migrate it if needed. If the disk is full, open it to read only.

    A damaged database is renamed, never deleted, and a new one gets what can be read of it.

    Raises:
        StoreError: the database is locked or from a newer version, or its file cannot be used.
    """
    try:
        return _open_to_write(path, busy_timeout_s=busy_timeout_s)
    except DatabaseNoRoomError:
        raise
    except DatabaseFullError as error:
        log.warning("the disk is full: %s", error.problem)
        return open_to_read(path, busy_timeout_s=busy_timeout_s)


def _open_to_write(path: Path, *, busy_timeout_s: float) -> OpenedDatabase:
    note = ConditionNote(path)
    kept = note.rescued_file
    is_readable = not (note.is_damaged or _is_emptied(path) or Log(path).is_damaged)
    if kept is None and is_readable:
        copies = copies_of(path)
        try:
            database = _open(path, busy_timeout_s=busy_timeout_s, is_clean=note.is_clean)
            note.remove()
            if database.is_checked:
                remove_copies(copies)
            return OpenedDatabase(database=database)
        except DatabaseDamagedError as error:
            log.warning("database %s is damaged: %s", path, error)
    kept = kept or free_name(path, "damaged")
    try:
        note.set_rescue(kept)
        rescued = _rescue(path, kept)
    except OSError as error:
        raise file_error(error, path, words.cannot_rescue(path, error.strerror)) from error
    except sqlite3.Error as error:
        raise store_error(error, path) or DatabaseFileError(str(error)) from error
    database = _open(path, busy_timeout_s=busy_timeout_s, is_clean=False)
    note.remove()
    return OpenedDatabase(database=database, kept_aside=kept, rescued=rescued)


def open_to_read(path: Path, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> OpenedDatabase:
    """Open a database on a full disk.

    Raises:
        DatabaseNoRoomError: the file is missing, damaged or of an earlier format.
    """
    if not path.exists() or ConditionNote(path).is_damaged:
        raise DatabaseNoRoomError(words.no_space(path))
    database = Database(path, busy_timeout_s=busy_timeout_s, is_read_only=True)
    try:
        if _stored_version(database, path) < len(MIGRATIONS):
            raise DatabaseNoRoomError(words.no_space(path))
        _check_integrity(database, path)
    except StoreError as error:
        database.abandon()
        raise DatabaseNoRoomError(words.no_space(path), details=error.problem.cause) from error
    return OpenedDatabase(database=database)


def move_file(source: Path, target: Path | str) -> None:
    source.replace(target)


def _is_emptied(path: Path) -> bool:
    """Return True if the file has lost all its content, which SQLite takes for a new database."""
    is_empty = path.exists() and path.stat().st_size == 0
    return is_empty and (Path(f"{path}-wal").exists() or bool(backups_of(path)))


def _rescue(path: Path, kept: Path) -> Rescued | None:
    """Move a damaged database aside and put the rescued one in its place.

    A kill at any moment loses nothing: the next call with the same paths continues. If the rescued
    database was in its place before the kill, return None.
    """
    if kept.exists() and path.exists():
        return None
    if not kept.exists():
        # The file itself comes last. Until then its log may already be under the new name.
        for suffix in ("-wal", "-shm", ""):
            part = Path(f"{path}{suffix}")
            if part.exists():
                move_file(part, f"{kept}{suffix}")
    new = path.with_suffix(".rescue-part")
    rescued = rescue(kept, [*copies_of(path), *backups_of(path)], new)
    log.warning("the damaged database is now %s; rescued: %s", kept.name, rescued)
    move_file(new, path)
    return rescued


def _open(path: Path, *, busy_timeout_s: float, is_clean: bool) -> Database:
    _make_private(path)
    database = Database(path, busy_timeout_s=busy_timeout_s)
    try:
        version = _stored_version(database, path)
        database.is_checked = is_clean
        if path.stat().st_size <= ALWAYS_CHECKED_BYTES:
            _check_integrity(database, path)
            database.is_checked = True
        if 0 < version < len(MIGRATIONS):
            copy_before_update(database, path)
        _set_up(database)
        _migrate_stored(database, path, version)
    except BaseException:
        database.abandon()
        raise
    return database


def _migrate_stored(database: Database, path: Path, version: int) -> None:
    try:
        migrate(database, MIGRATIONS[version:], since=version)
    except sqlite3.OperationalError as error:
        # The tables are not those of the version that the file states.
        raise DatabaseDamagedError(words.inconsistent(path), details=str(error)) from error


def _make_private(path: Path) -> None:
    """Create the file if missing, and let only its owner read it.

    SQLite gives its -wal and -shm files the same permissions.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise file_error(error, path, words.cannot_open(path, error.strerror)) from error


def _stored_version(database: Database, path: Path) -> int:
    """Return the number of migrations applied to the database. Call before any write.

    Raises:
        DatabaseNewerError: a newer version of the app wrote the file. The file stays unchanged.
    """
    (version,) = database.rows("PRAGMA user_version")[0]
    assert isinstance(version, int)
    if not 0 <= version <= _MAX_VERSION:
        raise DatabaseDamagedError(words.inconsistent(path))
    if version > len(MIGRATIONS):
        cause = words.newer_format(path, version, len(MIGRATIONS))
        raise DatabaseNewerError(cause)
    return version


def _check_integrity(database: Database, path: Path) -> None:
    # This check finds damage before anything is written. It reads the whole file, about 1 ms per
    # MB.
    damage = database.find_damage()
    if damage:
        raise DatabaseDamagedError(words.inconsistent(path), details=damage)


def _set_up(database: Database) -> None:
    database.rows("PRAGMA journal_mode = WAL")
    # With NORMAL, a commit does not wait for the disk. The operating system already has the data,
    # so a killed process loses nothing. A power cut can lose the last commits, but never leaves a
    # commit half written.
    database.run("PRAGMA synchronous = NORMAL")
    database.run("PRAGMA foreign_keys = ON")
    # Overwrite deleted rows with zeros: text that was deleted for good must not stay in the file.
    database.rows("PRAGMA secure_delete = ON")


def migrate(database: Database, migrations: Sequence[Migration], *, since: int) -> None:
    """Apply the migrations, each in its own transaction.

    `since` is the number of migrations that were applied before. Each transaction also stores the
    number of its migration in PRAGMA user_version.
    """
    for number, statements in enumerate(migrations, start=since + 1):
        with database.transaction():
            for statement in statements:
                database.run(statement)
            # The number is part of the SQL text, because a PRAGMA takes no parameters.
            database.run(f"PRAGMA user_version = {number}")
