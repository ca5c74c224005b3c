"""The SQLite connection: runs SQL, and translates errors.

Only the thread that opened the connection, the store thread, may use it. conversations.py and
presets.py run their SQL through `Database`; the tables are defined in schema.py. opening.py opens,
checks and migrates the file.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from app.store.checks import add_functions, find_damage
from app.store.condition import ConditionNote
from app.store.errors import DatabaseDamagedError, DatabaseFullError, store_error
from app.store.pages import decode_leniently
from app.store.room import is_full
from app.store.schema import Value
from app.words import problems as words

BUSY_TIMEOUT_S = 2.0  # seconds to wait for a database lock that another program holds


class Database:
    """A connection to an existing database file. Use it only on the thread that created it."""

    def __init__(self, path: Path, *, busy_timeout_s: float, is_read_only: bool = False) -> None:
        self._path = path
        self._note = ConditionNote(path)
        self.is_read_only = is_read_only
        # True if the whole file was read, or is as a run has left it that had read it.
        self.is_checked = False
        self._is_damaged = False  # True after an error that only a damaged file causes
        with self._errors_in_words():
            self._connection = sqlite3.connect(path, timeout=busy_timeout_s, isolation_level=None)
            add_functions(self._connection)
            if is_read_only:
                # An exclusive connection keeps the index of the log in memory, so it needs no room
                # on the disk.
                self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
                self._connection.execute("PRAGMA query_only = ON")

    def close(self) -> None:
        """Close the connection. Note a checked file, so that the next start need not check it."""
        self._connection.close()
        if self.is_checked and not self._is_damaged and not self.is_read_only:
            self._note.set_clean()

    def abandon(self) -> None:
        """Close the connection of a database that could not be opened."""
        self._connection.close()

    def note_damage(self) -> None:
        """Let the next start rescue the file, because its content is damaged."""
        self._is_damaged = True
        self._note.set_damaged()

    @property
    def num_changes(self) -> int:
        """The number of rows that this connection has changed."""
        return self._connection.total_changes

    @property
    def has_room(self) -> bool:
        return not is_full(self._path.parent)

    @property
    def size(self) -> int:
        """Bytes of all pages."""
        ((size,),) = self.rows(
            "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
        )
        assert isinstance(size, int)
        return size

    def find_damage(self) -> str:
        """Read the whole database. Return what is wrong with it, or an empty string."""
        with self._errors_in_words():
            return find_damage(self._connection)

    def copy_to(self, path: Path) -> None:
        """Write all pages into an empty file, and flush it."""
        with self._errors_in_words(), closing(sqlite3.connect(path)) as copy:
            # A copy that was interrupted is not used, so it needs no journal.
            copy.execute("PRAGMA journal_mode = OFF")
            self._connection.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
        with path.open("rb") as file:
            os.fsync(file.fileno())

    def rows(self, sql: str, parameters: Sequence[Value] = ()) -> list[tuple[Value, ...]]:
        """Return all rows of a query."""
        with self._errors_in_words():
            try:
                return self._connection.execute(sql, parameters).fetchall()
            except sqlite3.OperationalError as error:
                if _UNDECODED not in str(error):
                    raise
        self.note_damage()
        self._connection.text_factory = decode_leniently
        return self.rows(sql, parameters)

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
        except UnicodeDecodeError as error:  # in a message of SQLite that quotes a damaged name
            self.note_damage()
            raise DatabaseDamagedError(words.inconsistent(self._path)) from error
        except sqlite3.Error as error:
            known = store_error(error, self._path)
            if self.is_read_only and error.sqlite_errorcode == sqlite3.SQLITE_READONLY:
                known = DatabaseFullError(words.no_space(self._path))
            if known is None:
                raise
            if isinstance(known, DatabaseDamagedError):
                self.note_damage()
            raise known from error


# Beginning of the message of the exception for text that is not UTF-8. It has no code of its own.
_UNDECODED = "Could not decode to UTF-8"
