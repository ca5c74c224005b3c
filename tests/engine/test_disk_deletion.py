"""Deletion of cached state on disk while the engine thread that kept it is gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.cache.disk.folder import FolderInUseError, FolderLock, delete_all
from engine.disk_deletion import delete, with_lock
from engine.events import ClearDisk, Forget, ReportStatistics, StatisticsReported
from engine.types import NOTHING_CACHED, ConversationId, Problem
from engine.unanswered import Unanswered
from engine.wanted import DiskSettings

A = ConversationId("A")


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A folder with a record, whose lock this process holds."""
    root = tmp_path / "cache"
    lock = FolderLock(root)
    (root / "model").mkdir()
    (root / "model" / "record").touch()
    yield root
    lock.release()


def test_state_is_deleted_while_a_replaced_thread_holds_the_lock(root: Path) -> None:
    with_lock(root, delete_all)

    assert not (root / "model").exists()


def test_state_that_another_process_uses_is_not_deleted(root: Path) -> None:
    (root / "lock").write_text("1")

    with pytest.raises(FolderInUseError):
        with_lock(root, delete_all)
    assert (root / "model" / "record").exists()


def test_state_is_deleted_while_no_engine_can_start(root: Path) -> None:
    delete(ClearDisk(), DiskSettings(str(root)))

    assert not (root / "model").exists()


def test_new_thread_gets_the_deletion_that_was_not_answered() -> None:
    unanswered = Unanswered()
    unanswered.note_command(ClearDisk())
    unanswered.take_failed(Problem(title="", cause="", advice="", details=""))

    assert unanswered.take_questions() == [ClearDisk()]


def test_reports_answer_commands_in_their_order() -> None:
    unanswered = Unanswered()
    for command in (ReportStatistics(), Forget(A, on_disk=False), Forget(A)):
        unanswered.note_command(command)
    for _ in range(2):
        unanswered.note_event(StatisticsReported(NOTHING_CACHED))
        assert unanswered.has_deletions
    unanswered.note_event(StatisticsReported(NOTHING_CACHED))
    assert not unanswered.has_deletions
