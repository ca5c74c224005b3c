"""The SQLite connection: opens, checks and migrates the database, runs SQL, translates errors.

Only the thread that opened the connection, the store thread, may use it. conversations.py and
presets.py run their SQL through `Database`; the tables are defined in schema.py. The database keeps
a write-ahead log (WAL), so a killed process loses no committed change. A damaged file is renamed
and replaced by an empty database.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.conversation.folding import search_text
from app.paths import free_name
from app.store.errors import (
    DatabaseDamagedError,
    DatabaseFileError,
    DatabaseNewerError,
    store_error,
)
from app.store.schema import MIGRATIONS, Migration
from app.words import problems as words

log = logging.getLogger(__name__)

BUSY_TIMEOUT_S = 2.0  # seconds to wait for a database lock that another program holds

Value = str | bytes | int | float | None


class Database:
    """A connection to an existing database file. Use it only on the thread that created it."""

    def __init__(self, path: Path, *, busy_timeout_s: float) -> None:
        self._path = path
        with self._errors_in_words():
            self._connection = sqlite3.connect(path, timeout=busy_timeout_s, isolation_level=None)
            # The triggers of the search index call this function.
            self._connection.create_function("search_text", 1, search_text, deterministic=True)

    def close(self) -> None:
        self._connection.close()

    def rows(self, sql: str, parameters: Sequence[Value] = ()) -> list[tuple[Value, ...]]:
        """Return all rows of a query."""
        with self._errors_in_words():
            return self._connection.execute(sql, parameters).fetchall()

    def run(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        """Run one statement and return how many rows it changed."""
        with self._errors_in_words():
            return self._connection.execute(sql, parameters).rowcount

    def run_many(self, sql: str, parameters: Iterator[Sequence[Value]]) -> None:
        """Run a statement once for each sequence of parameters."""
        with self._errors_in_words():
            self._connection.executemany(sql, parameters)

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Run the statements of a `with` block as one transaction; roll back on an exception."""
        self.run("BEGIN IMMEDIATE")
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            # After some errors, such as a full disk, SQLite has already ended the transaction.
            if self._connection.in_transaction:
                self.run("ROLLBACK")
            raise

    @contextmanager
    def _errors_in_words(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            known = store_error(error, self._path)
            if known is None:
                raise
            raise known from error


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedDatabase:
    """A database that is ready for use.

    `kept_aside` is the new path of a damaged database that was replaced, or None.
    """

    database: Database
    kept_aside: Path | None = None


def open_database(path: Path, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> OpenedDatabase:
    """Open the database; create or migrate it if necessary.

    A damaged database is renamed, never deleted, and a new one is created.

    Raises:
        StoreError: the database is locked or from a newer version, or its file cannot be used.
    """
    try:
        return OpenedDatabase(database=_open(path, busy_timeout_s=busy_timeout_s))
    except DatabaseDamagedError as error:
        kept = _keep_aside(path)
        log.warning("database %s is damaged (%s); renamed to %s", path, error, kept.name)
        database = _open(path, busy_timeout_s=busy_timeout_s)
        return OpenedDatabase(database=database, kept_aside=kept)


def _open(path: Path, *, busy_timeout_s: float) -> Database:
    _make_private(path)
    database = Database(path, busy_timeout_s=busy_timeout_s)
    try:
        version = _stored_version(database, path)
        _check_integrity(database, path)
        _set_up(database)
        migrate(database, MIGRATIONS[version:], since=version)
    except BaseException:
        database.close()
        raise
    return database


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
        raise DatabaseFileError(words.cannot_open(path, error.strerror)) from error


def _stored_version(database: Database, path: Path) -> int:
    """Return the number of migrations applied to the database. Call before any write.

    Raises:
        DatabaseNewerError: a newer version of the app wrote the file. The file stays unchanged.
    """
    (version,) = database.rows("PRAGMA user_version")[0]
    assert isinstance(version, int)
    if version > len(MIGRATIONS):
        cause = words.newer_format(path, version, len(MIGRATIONS))
        raise DatabaseNewerError(cause)
    return version


def _check_integrity(database: Database, path: Path) -> None:
    # This check finds damage before anything is written. It reads the whole file, about 1 ms per
    # MB.
    findings = database.rows("PRAGMA quick_check(1)")
    if findings != [("ok",)]:
        raise DatabaseDamagedError(words.inconsistent(path), details=str(findings))


def _set_up(database: Database) -> None:
    database.rows("PRAGMA journal_mode = WAL")
    # With NORMAL, a commit does not wait for the disk. The operating system already has the data,
    # so a killed process loses nothing. A power cut can lose the last commits, but never leaves a
    # commit half written.
    database.run("PRAGMA synchronous = NORMAL")
    database.run("PRAGMA foreign_keys = ON")


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


def _keep_aside(path: Path) -> Path:
    kept = free_name(path, "damaged")
    try:
        # The write-ahead log is renamed too: it may contain messages that are not in the main file.
        for suffix in ("-wal", "-shm", ""):
            part = Path(f"{path}{suffix}")
            if part.exists():
                part.replace(f"{kept}{suffix}")
    except OSError as error:
        raise DatabaseFileError(words.cannot_move_damaged(path, error.strerror)) from error
    return kept
