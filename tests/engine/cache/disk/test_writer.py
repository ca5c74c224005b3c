"""The writing thread of the disk tier, closed while a record is being written."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import mlx.core as mx
import pytest

from engine.cache.disk import daily, writer
from engine.cache.disk.folder import RecordFolder
from engine.cache.disk.record import RecordKey, RecordKind, write_record
from engine.cache.disk.shares import shares_on_disk
from engine.cache.disk.writer import DiskLimits, RecordWriter
from engine.cache.feeding import Feed
from engine.cache.points import PointKind
from engine.cache.radix import TokenRun
from engine.types import ConversationId

RUN = TokenRun((5, 6, 7), (Feed(0, 3, one_by_one=False),))


def writer_with_a_record(folder: RecordFolder) -> RecordWriter:
    """Return a writer that a record was handed to."""
    limits = DiskLimits(budget_bytes=1 << 30, daily_bytes=1 << 30)
    made = RecordWriter(folder, limits, time.time)
    key = RecordKey("one", RecordKind.KV, "", RUN)
    assert made.write(key, [mx.zeros((3, 2))], PointKind.TAIL, {ConversationId("chat")})
    return made


def close_during_a_write(
    root: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[..., int]
) -> RecordFolder:
    """Close a writer while `write` writes its record. Return the folder as a new start finds it."""
    has_begun = threading.Event()

    def begin(*arguments: object) -> int:
        has_begun.set()
        return write(*arguments)

    monkeypatch.setattr(writer, "write_record", begin)
    closed = writer_with_a_record(RecordFolder(root, "one"))
    assert has_begun.wait(60)
    closed.close()
    assert (root / "one" / "index").exists()
    return RecordFolder(root, "one")


def test_close_saves_the_index_and_the_count_after_a_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = close_during_a_write(tmp_path, monkeypatch, write_record)
    assert len(found.index.entries) == 1
    # The files of the records, and the index
    size = sum(file.stat().st_size for file in found.path.iterdir())
    assert daily.DailyBytes(found.daily_file, time.time).nbytes == size > found.index.nbytes


def test_close_saves_the_index_after_a_record_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        raise OSError(5, "Input/output error")

    found = close_during_a_write(tmp_path, monkeypatch, fail)
    assert not found.index.entries


def test_record_that_waits_for_the_thread_takes_no_bytes_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_write = threading.Event()

    def wait_and_write(*arguments: object) -> int:
        assert may_write.wait(60)
        return write_record(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(writer, "write_record", wait_and_write)
    folder = RecordFolder(tmp_path, "one")
    made = writer_with_a_record(folder)
    shares = shares_on_disk(folder.index, needs_state=False)
    assert folder.index.nbytes > folder.index.stored_bytes == 0 == made.daily.nbytes
    assert shares.own[ConversationId("chat")] == 0
    may_write.set()
    made.wait(60)
    shares = shares_on_disk(folder.index, needs_state=False)
    assert folder.index.stored_bytes == made.daily.nbytes > 0
    assert shares.own[ConversationId("chat")] == made.daily.nbytes
    made.close()


def test_count_of_the_day_is_right_after_a_kill(tmp_path: Path) -> None:
    folder = RecordFolder(tmp_path, "one")
    killed = writer_with_a_record(folder)
    killed.wait(60)
    found = daily.DailyBytes(folder.daily_file, time.time)
    assert found.nbytes == killed.written > 0
    killed.close()


def test_records_of_pinned_conversations_are_deleted_last(tmp_path: Path) -> None:
    folder = RecordFolder(tmp_path, "one")
    times = count(1.0)
    pinned = {"chat 0"}
    limits = DiskLimits(budget_bytes=20_000, daily_bytes=1 << 30)
    made = RecordWriter(folder, limits, lambda: next(times), pinned)
    for number in range(8):
        run = TokenRun((number, 6, 7), (Feed(0, 3, one_by_one=False),))
        key = RecordKey(f"{number}", RecordKind.KV, "", run)
        users = {ConversationId(f"chat {number}")}
        assert made.write(key, [mx.zeros((3, 200))], PointKind.TAIL, users)
        made.wait(60)
    left = {user for entry in folder.index.entries.values() for user in entry.users}
    made.close()
    # The record of chat 0 was used longest ago.
    assert {"chat 0", "chat 7"} <= left
    assert "chat 1" not in left
