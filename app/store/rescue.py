"""Rescue of a damaged database: everything that can be read goes into a new one.

    0. If the write-ahead log is damaged, the pages of its whole frames go into a copy of the file,
       which is read instead (wal.py). Texts with a wrong checksum (checks.py) come last.
    1. SQLite reads each table from both ends, up to the first page that it cannot read.
    2. Chats and messages on pages that SQLite cannot reach are found page by page (pages.py).
    3. The newest whole backup adds rows that the damaged file had and that could not be read.
    4. Messages that are still missing, but have replies, get a placeholder (mending.py), so that
       the replies stay in their chat.

The damaged file is not changed. Its search indexes are not copied: the search indexes the new
database in slices.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from app.store.backups import open_to_read
from app.store.checks import KnownTexts, add_functions
from app.store.mending import mend
from app.store.pages import FileImage, decode_leniently
from app.store.schema import MIGRATIONS, Value
from app.store.wal import Log

_log = logging.getLogger(__name__)

# Longest value that is read. A damaged length could otherwise take a gigabyte of memory.
_MAX_LEN = 200_000_000
# The least number of columns that a row of the table had in any version of the app. No other table
# has as many. A row of `messages` has more columns than one of `conversations`.
_FEWEST_COLUMNS = {"messages": 29, "conversations": 10}
# Errors that damage causes. SQLite quotes damaged names, which Python cannot decode, in its
# messages.
_UNREADABLE = (sqlite3.Error, UnicodeDecodeError)
_HIGHEST = (1 << 62) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescued:
    """The outcome of a rescue."""

    num_chats: int
    num_messages: int  # without placeholders
    num_missing: int  # messages that could not be read and are in no backup, as far as is known
    may_lack_more: bool  # True if the file does not tell how many messages it had
    num_garbled: int  # messages with characters that could not be read
    num_changed: int  # messages whose text is not the one that was written
    num_nameless: int  # chats whose title and settings could not be read
    backup: Path | None = None  # backup that added rows


def rescue(damaged: Path, backups: Sequence[Path], new: Path) -> Rescued:
    """Write what can be read of a damaged database into a new file, which replaces an earlier one.

    Args:
        damaged: the damaged file, which may have a write-ahead log beside it.
        backups: backups, the newest one first.
        new: path of the new file.

    Raises:
        OSError, sqlite3.Error: the new file cannot be written.
    """
    new.unlink(missing_ok=True)
    os.close(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    with closing(sqlite3.connect(new, isolation_level=None)) as target:
        _create_tables(target)
        target.execute("BEGIN IMMEDIATE")
        log = Log(damaged)  # before SQLite opens it, which changes the index of the log
        image = _image_of(damaged, new.with_suffix(".image-part")) if log.is_damaged else None
        try:
            found = _fill(target, damaged, image, backups, lacks_commits=not log.is_complete)
        finally:
            if image is not None:
                image.unlink()
        target.execute("COMMIT")
    with new.open("rb") as file:
        os.fsync(file.fileno())
    return found


def _image_of(damaged: Path, image: Path) -> Path | None:
    """Write a database with the whole frames of a damaged log. Return None if the file is empty.

    Raises:
        OSError: the file cannot be written.
    """
    try:
        pages = FileImage(damaged)
    except ValueError as error:
        _log.warning("%s cannot be read page by page: %s", damaged.name, error)
        return None
    with closing(pages):
        image.unlink(missing_ok=True)
        os.close(os.open(image, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        pages.write_to(image)
    return image


def _create_tables(target: sqlite3.Connection) -> None:
    # A rescue that is interrupted begins again, so the file needs no journal.
    target.execute("PRAGMA journal_mode = OFF")
    target.execute("PRAGMA synchronous = OFF")
    add_functions(target)
    for number, statements in enumerate(MIGRATIONS, start=1):
        for statement in statements:
            target.execute(statement)
        target.execute(f"PRAGMA user_version = {number}")
    # Messages are not indexed while they are in this range.
    target.execute("UPDATE search_progress SET first = ?, last = ?", (-_HIGHEST, _HIGHEST))
    # Numbers and ids of all rows that the damaged file had, as far as its indexes can be read.
    target.execute("CREATE TEMP TABLE had_chats (conversation_id TEXT PRIMARY KEY)")
    target.execute(
        "CREATE TEMP TABLE had_messages"
        " (message_number INTEGER PRIMARY KEY, node_id TEXT, conversation_id TEXT)"
    )


def _fill(
    target: sqlite3.Connection,
    damaged: Path,
    image: Path | None,
    backups: Sequence[Path],
    *,
    lacks_commits: bool,
) -> Rescued:
    source = image or damaged
    texts = KnownTexts()
    incomplete = _copy_tables(source, target, texts)
    if incomplete & _FEWEST_COLUMNS.keys():
        _copy_pages(source, target, texts)
    has_index = _note_index(source, target, texts)
    if lacks_commits or texts.changed:
        incomplete |= {table for table, _ in _tables(target)}
    if image is not None:
        _add_missing(damaged, target, incomplete, has_index, texts)
    before = target.total_changes
    used = None
    if incomplete:
        adds = (
            path for path in backups if _add_missing(path, target, incomplete, has_index, texts)
        )
        used = next(adds, None)
    added = target.total_changes > before
    num_changed = _add_changed(target, texts)
    ((num_unread,),) = target.execute(
        "SELECT count(*) FROM had_messages"
        " WHERE message_number NOT IN (SELECT message_number FROM messages)"
        " AND node_id NOT IN (SELECT node_id FROM messages)"
    ).fetchall()
    num_nameless, num_placeholders = mend(target)
    target.execute(
        "UPDATE search_progress SET (first, last) = "
        "(SELECT coalesce(min(message_number), 1), coalesce(max(message_number), 0) FROM messages)"
    )
    return Rescued(
        num_chats=_count(target, "conversations"),
        num_messages=_count(target, "messages") - num_placeholders,
        num_missing=max(num_unread, num_placeholders),
        may_lack_more=lacks_commits or (bool(incomplete) and not has_index),
        num_garbled=_count(target, "messages WHERE instr(content, char(65533))"),
        num_changed=num_changed,
        num_nameless=num_nameless,
        backup=used if added else None,
    )


def _copy_tables(source: Path, target: sqlite3.Connection, texts: KnownTexts) -> set[str]:
    """Copy the rows that SQLite can read. Return the tables that could not be read to their end."""
    tables = _tables(target)
    incomplete = {table for table, _ in tables}
    try:
        with closing(_reader(source)) as connection:
            texts.read(connection)
            for table, has_numbers in tables:
                if _copy_table(connection, target, table, texts, has_numbers=has_numbers):
                    incomplete.discard(table)
    except _UNREADABLE as error:
        _log.warning("%s cannot be read by SQLite: %s", source.name, error)
    return incomplete


def _reader(path: Path) -> sqlite3.Connection:
    connection = open_to_read(path)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_LEN)
    connection.text_factory = decode_leniently
    return connection


def _tables(target: sqlite3.Connection) -> list[tuple[str, bool]]:
    """Return the names of the tables that are copied, and whether their rows have numbers."""
    rows = target.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    return [
        (name, "WITHOUT ROWID" not in sql)
        for name, sql in rows
        if not name.startswith(
            ("sqlite_", "message_search", "message_checks", "search_progress", "attachment_search")
        )
    ]


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def _copy_table(
    source: sqlite3.Connection,
    target: sqlite3.Connection,
    table: str,
    texts: KnownTexts,
    *,
    has_numbers: bool,
) -> bool:
    known = _columns(source, table)
    columns = [name for name in _columns(target, table) if name in known]
    if not columns:
        # A table of a later version of the app is not in an older file.
        return not known and table not in _FEWEST_COLUMNS
    names = ", ".join(columns)
    ways = ("ORDER BY rowid", "ORDER BY rowid DESC") if has_numbers else ("",)
    for way in ways:
        # The table and its columns are those of the new database.
        query = f"SELECT {names} FROM {table} NOT INDEXED {way}"  # noqa: S608
        if _insert(target, table, columns, _readable(source, query, table), texts):
            return True
    return False


class _UnreadableError(Exception):
    """The rows of a table could be read only in part."""


def _readable(source: sqlite3.Connection, query: str, table: str) -> Iterator[tuple[Value, ...]]:
    try:
        yield from source.execute(query)
    except _UNREADABLE as error:
        _log.warning("not all rows of %s can be read: %s", table, error)
        raise _UnreadableError from error


def _insert(
    target: sqlite3.Connection,
    table: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Value]],
    texts: KnownTexts | None,
    *,
    condition: str = "1",
) -> bool:
    """Add the rows that the target lacks. Return True if all rows could be read.

    A row with a value of a wrong type is left out, and so is a message that `texts` does not
    accept. `condition` is an SQL condition on its columns.
    """
    names = ", ".join(columns)
    marks = ", ".join(f"?{at} AS {name}" for at, name in enumerate(columns, start=1))
    statement = (
        f"INSERT OR IGNORE INTO {table} ({names})"  # noqa: S608 (names of the new database)
        f" SELECT {names} FROM (SELECT {marks}) WHERE {condition}"
    )
    is_whole = True
    with suppress(_UnreadableError):
        for row in rows:
            if texts and table == "messages" and not texts.accept(columns, row):
                continue
            try:
                if not target.execute(statement, tuple(row)).rowcount and table == "messages":
                    _insert_under_new_id(target, statement, columns, row)
            except (sqlite3.IntegrityError, sqlite3.DataError) as error:
                _log.warning("a row of %s is left out: %s", table, error)
                is_whole = False
        return is_whole
    return False


def _insert_under_new_id(
    target: sqlite3.Connection, statement: str, columns: Sequence[str], row: Sequence[Value]
) -> None:
    """Add a message that was refused because a damaged id of another message is the same."""
    values = dict(zip(columns, row, strict=True))
    twin = target.execute(
        "SELECT 1 FROM messages WHERE node_id = ? AND message_number <> ?",
        (values["node_id"], values["message_number"]),
    ).fetchone()
    if twin:
        row = [uuid.uuid4().hex if name == "node_id" else values[name] for name in columns]
        target.execute(statement, tuple(row))


def _copy_pages(damaged: Path, target: sqlite3.Connection, texts: KnownTexts) -> None:
    """Add the chats and messages that are found page by page."""
    columns = {table: _columns(target, table) for table in _FEWEST_COLUMNS}
    number_column = columns["messages"].index("message_number")
    try:
        image = FileImage(damaged)
    except (OSError, ValueError) as error:
        _log.warning("%s cannot be read page by page: %s", damaged.name, error)
        return
    with closing(image):
        for number, values in image.rows(fewest_columns=min(_FEWEST_COLUMNS.values())):
            is_message = len(values) >= _FEWEST_COLUMNS["messages"]
            table = "messages" if is_message else "conversations"
            row = list(values[: len(columns[table])])
            if is_message:
                row[number_column] = number  # SQLite stores NULL in the place of the row's number
            _insert(target, table, columns[table][: len(row)], (row,), texts)


def _note_index(damaged: Path, target: sqlite3.Connection, texts: KnownTexts) -> bool:
    """Note which rows the damaged file had. Return True if its indexes could be read."""
    notes = (
        # Each query is answered by an index alone, without the pages of the rows.
        (
            "SELECT conversation_id FROM conversations INDEXED BY sqlite_autoindex_conversations_1",
            "INSERT OR IGNORE INTO had_chats VALUES (?)",
        ),
        (
            "SELECT rowid, node_id FROM messages INDEXED BY sqlite_autoindex_messages_1",
            "INSERT OR IGNORE INTO had_messages (message_number, node_id) VALUES (?, ?)",
        ),
        (
            "SELECT conversation_id, rowid FROM messages INDEXED BY messages_by_conversation",
            "UPDATE had_messages SET conversation_id = ? WHERE message_number = ?",
        ),
    )
    try:
        with closing(_reader(damaged)) as source:
            for query, statement in notes:
                target.executemany(statement, source.execute(query))
    except _UNREADABLE as error:
        _log.warning("an index of %s cannot be read: %s", damaged.name, error)
        return False
    finally:
        # A message whose checksum is there, but which is in no index.
        target.executemany(
            "INSERT OR IGNORE INTO had_messages (message_number, node_id) VALUES (?, '')",
            ((number,) for number in texts.numbers),
        )
    return True


def _add_changed(target: sqlite3.Connection, texts: KnownTexts) -> int:
    """Add the messages that no source has with the text that was written. Return their number."""
    before = _count(target, "messages")
    for columns, row in texts.changed.values():
        _insert(target, "messages", columns, (row,), None)
    return _count(target, "messages") - before


def _add_missing(
    backup: Path,
    target: sqlite3.Connection,
    incomplete: set[str],
    has_index: bool,  # noqa: FBT001
    texts: KnownTexts,
) -> bool:
    """Add rows of a backup that the target lacks. Return True if the backup could be read.

    If the indexes of the damaged file could be read, chats and messages that were deleted for good
    since the backup stay deleted.
    """
    had = {
        "conversations": "conversation_id IN (SELECT conversation_id FROM had_chats)",
        "messages": "(message_number, node_id) IN"
        " (SELECT message_number, node_id FROM had_messages)",
    }
    wanted = (
        incomplete | _FEWEST_COLUMNS.keys() if incomplete & _FEWEST_COLUMNS.keys() else incomplete
    )
    is_whole = True
    try:
        with closing(_reader(backup)) as source:
            for table in wanted:
                known = _columns(source, table)
                columns = [name for name in _columns(target, table) if name in known]
                if not columns:
                    continue
                query = f"SELECT {', '.join(columns)} FROM {table}"  # noqa: S608
                condition = had.get(table, "1") if has_index else "1"
                rows = _readable(source, query, table)
                is_whole &= _insert(target, table, columns, rows, texts, condition=condition)
    except _UNREADABLE as error:
        _log.warning("the backup %s cannot be read: %s", backup.name, error)
        return False
    return is_whole


def _count(target: sqlite3.Connection, table: str) -> int:
    ((count,),) = target.execute(f"SELECT count(*) FROM {table}").fetchall()  # noqa: S608
    return count
