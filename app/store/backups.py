"""Backups of the database: a copy for each day on which it was changed, in a folder beside it.

    conversations.db
    Backups/conversations-2026-11-24.db

A backup is made with SQLite's backup API while the app uses the database, then checked, flushed and
renamed. So a file in the folder is whole. `prune` keeps the newest ones.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from threading import Event
from urllib.parse import quote

from app.paths import PRIVATE_FOLDER
from app.stopping import StoppedError
from app.store import statements
from app.store.attachments import digests_in
from app.store.checks import find_damage
from app.store.errors import BackupError, DatabaseDamagedError, store_error
from app.store.updates import copies_of
from app.words import problems as words

log = logging.getLogger(__name__)

FOLDER = "Backups"
MAX_BACKUPS = 7
SPARE_BYTES = 10**9  # disk space that a backup must leave free
MAX_BYTES = 2 * 10**9  # of all backups; the newest one is kept even if it is larger
_PAGES = 256  # pages that one step copies: 1 MB
_PAUSE_S = 0.001  # after each step, so that other threads get the disk
_CHECK_STEPS = 1000  # steps of the check between two looks at the event
_PART = "backup.part"
# A backup by an older version may lack the table of folders, so each table has its own query.
_HELD = (
    "SELECT value FROM json_each(?) WHERE value IN (SELECT conversation_id FROM conversations)",
    "SELECT value FROM json_each(?) WHERE value IN (SELECT folder_id FROM folders)",
)
_PICTURE = "picture"  # column of the table attachments, which older backups lack
_NAME = re.compile(r"conversations-\d{4}-\d\d-\d\d\.db")


def backups_of(database: Path) -> list[Path]:
    """Return the backups of a database, the newest one first."""
    try:
        files = list((database.parent / FOLDER).iterdir())
    except OSError:
        return []
    return sorted((file for file in files if _NAME.fullmatch(file.name)), reverse=True)


def make_backup(database: Path, *, now: float, stop: Event) -> Path | None:
    """Make the backup of today, if the database has changed since the newest one. Any thread.

    Args:
        database: the file of the database, which another connection may use.
        now: Unix time.
        stop: event that ends the call early.

    Returns:
        The new file, or None if none is due.

    Raises:
        DatabaseDamagedError: the database is damaged, so it replaces no earlier backup.
        StoreError: the backup could not be written.
        StoppedError: the event was set.
    """
    day = datetime.fromtimestamp(now).astimezone().date()
    path = database.parent / FOLDER / f"conversations-{day.isoformat()}.db"
    part = path.with_name(_PART)
    part.unlink(missing_ok=True)  # of a process that was killed
    changed_at = _changed_at(database)
    if path.exists() or not _is_newer(changed_at, database):
        return None
    try:
        if shutil.disk_usage(database.parent).free < database.stat().st_size + SPARE_BYTES:
            log.warning("no backup is made: the disk is nearly full")
            return None
        path.parent.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        _copy(database, part, stop)
        with part.open("rb") as file:
            os.fsync(file.fileno())
        # A change during the copy is newer than this time, so it leads to another backup.
        os.utime(part, ns=(changed_at, changed_at))
        part.replace(path)
    except OSError as error:
        raise BackupError(words.cannot_use(path, error.strerror or "")) from error
    except sqlite3.Error as error:
        if stop.is_set():
            raise StoppedError from error
        known = store_error(error, database)
        if known is None:
            raise
        if isinstance(known, DatabaseDamagedError):
            raise known from error
        raise BackupError(known.problem.cause, details=known.problem.details) from error
    finally:
        part.unlink(missing_ok=True)
    _prune(database)
    return path


def ids_in_backups(database: Path, ids: Iterable[str]) -> frozenset[str]:
    """Return those of some ids of conversations and folders that a backup contains. Any thread.

    A backup that cannot be read is passed over.
    """
    wanted, held = json.dumps(list(ids)), set[str]()
    for backup in backups_of(database):
        with suppress(sqlite3.Error), closing(open_to_read(backup)) as reader:
            for query in _HELD:
                held.update(row[0] for row in reader.execute(query, (wanted,)))
    return frozenset(held)


def pictures_in_backups(database: Path) -> frozenset[str] | None:
    """Return the digests of all pictures in backups and in copies before an update. Any thread.

    None if one of these files cannot be read, because its pictures are then unknown.
    """
    found: set[str] = set()
    for backup in (*backups_of(database), *copies_of(database)):
        try:
            with closing(open_to_read(backup)) as reader:
                if _PICTURE in {row[1] for row in reader.execute("PRAGMA table_info(attachments)")}:
                    rows = reader.execute(statements.SELECT_PICTURES, (None,))
                    found |= digests_in(str(row[0]) for row in rows)
        except sqlite3.Error as error:
            log.warning("the pictures of %s are unknown: %s", backup.name, error)
            return None
    return frozenset(found)


def check_database(database: Path, stop: Event) -> None:
    """Read the whole database, which another connection may use. Any thread.

    Raises:
        DatabaseDamagedError: the database is damaged.
        StoppedError: the event was set.
    """
    try:
        with closing(open_to_read(database)) as reader:
            reader.set_progress_handler(stop.is_set, _CHECK_STEPS)
            damage = find_damage(reader)
    except sqlite3.Error as error:
        if stop.is_set():
            raise StoppedError from error
        raise DatabaseDamagedError(words.not_understood(database), details=str(error)) from error
    if damage:
        raise DatabaseDamagedError(words.inconsistent(database), details=damage)


def open_to_read(path: Path) -> sqlite3.Connection:
    """Return a connection that cannot change the file."""
    return sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, isolation_level=None)


def _is_newer(changed_at: int, database: Path) -> bool:
    """Return True if the database has changed since its newest backup, or has none."""
    newest = next(iter(backups_of(database)), None)
    return newest is None or changed_at > newest.stat().st_mtime_ns


def _changed_at(database: Path) -> int:
    """Return the time of the last change in nanoseconds. An empty log is no change."""
    files = (database, Path(f"{database}-wal"))
    found = [file.stat() for file in files if file.exists()]
    return max((one.st_mtime_ns for one in found if one.st_size), default=0)


def _copy(source: Path, part: Path, stop: Event) -> None:
    def pause(_status: int, _remaining: int, _total: int) -> None:
        if stop.wait(_PAUSE_S):
            raise StoppedError

    with closing(open_to_read(source)) as reader, closing(sqlite3.connect(part)) as writer:
        # The file is flushed after the copy. An interrupted copy is deleted.
        writer.execute("PRAGMA journal_mode = OFF")
        writer.execute("PRAGMA synchronous = OFF")
        # Inside a read transaction the source does not change, so the copy is not begun again.
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
        reader.backup(writer, pages=_PAGES, progress=pause)
        # A backup is one file, without a write-ahead log.
        writer.execute("PRAGMA journal_mode = DELETE")
        writer.set_progress_handler(stop.is_set, _CHECK_STEPS)
        damage = find_damage(writer)
    if damage:
        raise DatabaseDamagedError(words.inconsistent(source), details=damage)


def _prune(database: Path) -> None:
    """Delete old backups. At most MAX_BACKUPS and MAX_BYTES are kept, and at least the newest."""
    total = 0
    for number, file in enumerate(backups_of(database)):
        total += file.stat().st_size
        if number and (number >= MAX_BACKUPS or total > MAX_BYTES):
            file.unlink(missing_ok=True)
