"""Checksums of the texts of messages, which find damage that SQLite accepts.

A page that is old, or a byte that has changed within a text, is valid for SQLite. Triggers write
the checksum of each message into a table of its own (schema.py), so a message and its checksum are
on different pages.
"""

from __future__ import annotations

import logging
import sqlite3
import zlib
from collections.abc import Iterable, Mapping, Sequence

from app.conversation.folding import search_text
from app.store.schema import Value
from app.words import problems as words

log = logging.getLogger(__name__)

# Messages whose text is not the one that was written, and checksums whose message is missing.
_CHANGED = """
    SELECT count(*) FROM message_checks LEFT JOIN messages USING (message_number)
    WHERE messages.message_number IS NULL OR checksum <> text_checksum(content, reasoning)
"""


def text_checksum(content: str, reasoning: str) -> int:
    """Return the CRC-32 of the texts of a message."""
    start = zlib.crc32(reasoning.encode("utf-8", "surrogatepass"))
    return zlib.crc32(content.encode("utf-8", "surrogatepass"), start)


def add_functions(connection: sqlite3.Connection) -> None:
    """Provide the functions that the triggers and the indexes of the database call."""
    connection.create_function("search_text", 1, search_text, deterministic=True)
    connection.create_function("text_checksum", 2, text_checksum, deterministic=True)


def find_damage(connection: sqlite3.Connection) -> str:
    """Read the whole database. Return what is wrong with it, or an empty string."""
    findings = connection.execute("PRAGMA quick_check(1)").fetchall()
    if findings != [("ok",)]:
        return str(findings)
    if not connection.execute("PRAGMA table_info(message_checks)").fetchall():
        return ""  # an earlier format
    connection.create_function("text_checksum", 2, text_checksum, deterministic=True)
    try:
        ((changed,),) = connection.execute(_CHANGED).fetchall()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
            raise
        return str(error)  # the function got a value that is no text
    return words.changed_texts(changed) if changed else ""


class KnownTexts:
    """The checksums of a damaged database, and its messages whose text has another one."""

    def __init__(self) -> None:
        self._checksums: dict[int, int] = {}
        self._changed: dict[int, tuple[Sequence[str], Sequence[Value]]] = {}

    def read(self, source: sqlite3.Connection) -> None:
        """Add the checksums that can be read. Those of an earlier source stay."""
        try:
            for number, checksum in source.execute("SELECT * FROM message_checks"):
                self._checksums.setdefault(number, checksum)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            log.warning("not all checksums can be read: %s", error)

    def accept(self, columns: Sequence[str], row: Sequence[Value]) -> bool:
        """Return True if a row of the table messages has the text that was written.

        Other rows are kept for `changed`.
        """
        values = dict(zip(columns, row, strict=False))
        number, content, reasoning = (
            values.get(name) for name in ("message_number", "content", "reasoning")
        )
        if not isinstance(number, int) or number not in self._checksums:
            return True
        if text_checksum(str(content), str(reasoning)) == self._checksums[number]:
            return True
        self._changed.setdefault(number, (columns, row))
        return False

    @property
    def numbers(self) -> Iterable[int]:
        """The numbers of all messages that the damaged database had."""
        return self._checksums.keys()

    @property
    def changed(self) -> Mapping[int, tuple[Sequence[str], Sequence[Value]]]:
        """Columns and values of the rows that were not accepted, by the number of the message."""
        return self._changed
