"""The model's own replies with token ids, found by text. They survive a restart of the server.

A client sends replies back as text. Encoding the text again often gives other ids than the model
drew, and the cached state would not match. The file is a cache: it has a limit of size and of age,
and a damaged file is replaced. For one thread.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import time
from pathlib import Path

from engine.types import Message, ReplyTokens, Role

log = logging.getLogger(__name__)

REPLIES_FILE = "server-replies.db"
_MAX_BYTES = 64 << 20
_MAX_AGE_S = 30 * 86_400.0
_DELETED_SHARE = 10  # one of so many replies is deleted when the file is full

_SCHEMA = """
CREATE TABLE IF NOT EXISTS reply (
    place BLOB PRIMARY KEY,
    words BLOB NOT NULL,
    content TEXT NOT NULL,
    reasoning TEXT NOT NULL,
    token_bytes BLOB NOT NULL,
    answer_start INTEGER NOT NULL,
    tokenizer_hash TEXT NOT NULL,
    used_at REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS reply_words ON reply (words, used_at);
CREATE INDEX IF NOT EXISTS reply_used_at ON reply (used_at);
"""
_COLUMNS = "content, reasoning, token_bytes, answer_start, tokenizer_hash"
_FILES = ("", "-wal", "-shm")  # endings of the files of a database


class KeptReplies:
    """Replies of the model, by two keys: their place in a chat, and their words alone."""

    def __init__(self, path: Path | None) -> None:
        """Open the file. Keep replies in memory if the path is None or the file can't be used."""
        try:
            self._db = _open(path)
        except (sqlite3.Error, OSError) as error:
            log.warning("the kept replies of the server can't be used: %s", error)
            delete_replies(path)
            self._db = _open_new(path)

    def close(self) -> None:
        self._db.close()

    def find(self, place: bytes, words: bytes | None) -> Message | None:
        """Return a reply at a place, else the newest with the same words, else None."""
        row = self._row("place = ?", place) or (words and self._row("words = ?", words))
        if not row:
            return None
        content, reasoning, token_bytes, answer_start, tokenizer_hash = row
        tokens = ReplyTokens(
            token_bytes=token_bytes, answer_start=answer_start, tokenizer_hash=tokenizer_hash
        )
        return Message(role=Role.ASSISTANT, content=content, reasoning=reasoning, reply=tokens)

    def add(self, place: bytes, words: bytes, reply: Message) -> None:
        """Keep a reply, which has token ids. If that fails, such as on a full disk, it is lost."""
        tokens = reply.reply
        assert tokens is not None
        values = (place, words, reply.content, reply.reasoning, tokens.token_bytes)
        try:
            with self._db:
                self._db.execute(
                    "INSERT OR REPLACE INTO reply VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (*values, tokens.answer_start, tokens.tokenizer_hash, time.time()),
                )
                self._keep_small()
        except sqlite3.Error as error:
            log.warning("a reply of the server is not kept: %s", error)

    def clear(self) -> None:
        """Delete all replies."""
        with contextlib.suppress(sqlite3.Error), self._db:
            self._db.execute("DELETE FROM reply")
        with contextlib.suppress(sqlite3.Error):
            self._db.execute("VACUUM")
            # The log beside the file still has the texts.
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _row(self, condition: str, key: bytes) -> tuple[str, str, bytes, int, str] | None:
        query = f"SELECT {_COLUMNS} FROM reply WHERE {condition} ORDER BY used_at DESC LIMIT 1"  # noqa: S608 (no value)
        try:
            return self._db.execute(query, (key,)).fetchone()
        except sqlite3.Error as error:
            log.warning("the kept replies of the server can't be read: %s", error)
            return None

    def _keep_small(self) -> None:
        """Delete old replies, and the oldest if the file is full."""
        self._db.execute("DELETE FROM reply WHERE used_at < ?", (time.time() - _MAX_AGE_S,))
        (num_pages,) = self._db.execute("SELECT page_count FROM pragma_page_count").fetchone()
        (num_free,) = self._db.execute(
            "SELECT freelist_count FROM pragma_freelist_count"
        ).fetchone()
        (page_bytes,) = self._db.execute("SELECT page_size FROM pragma_page_size").fetchone()
        if (num_pages - num_free) * page_bytes > _MAX_BYTES:
            self._db.execute(
                "DELETE FROM reply WHERE place IN (SELECT place FROM reply ORDER BY used_at"
                " LIMIT (SELECT 1 + COUNT(*) / ? FROM reply))",
                (_DELETED_SHARE,),
            )


def delete_replies(path: Path | None) -> None:
    """Delete the file of replies. No server may use it."""
    for ending in _FILES:
        if path is not None:
            with contextlib.suppress(OSError):
                path.with_name(path.name + ending).unlink(missing_ok=True)


def _open_new(path: Path | None) -> sqlite3.Connection:
    """Open a file that was deleted, or a database in memory if that fails."""
    try:
        return _open(path)
    except (sqlite3.Error, OSError) as error:
        log.warning("the server keeps replies in memory only: %s", error)
        return _open(None)


def _open(path: Path | None) -> sqlite3.Connection:
    if path is not None:
        # SQLite gives the file beside it the same mode.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600))
    db = sqlite3.connect(":memory:" if path is None else path)
    try:
        db.executescript(f"PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; {_SCHEMA}")
    except sqlite3.Error:
        db.close()
        raise
    return db
