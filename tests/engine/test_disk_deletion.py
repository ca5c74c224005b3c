"""Deletion of cached state on disk while the engine thread that kept it is gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.cache.disk.folder import FolderInUseError, FolderLock, delete_all
from engine.disk_deletion import DiskDeletion, with_lock
from engine.events import ClearDisk, Forget, SetDisk, SetMemory, StatisticsReported
from engine.types import NOTHING_CACHED, ConversationId, Problem
from engine.unanswered import Unanswered

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
    deletion = DiskDeletion(None)
    deletion.obey(SetDisk(str(root)))

    deletion.obey(ClearDisk())

    assert not (root / "model").exists()


def test_new_thread_gets_the_folder_and_the_deletion_that_was_not_answered() -> None:
    unanswered = Unanswered()
    for command in (SetDisk("/old"), SetDisk("/new"), ClearDisk()):
        unanswered.note_command(command)
    unanswered.take_failed(Problem(title="", cause="", advice="", details=""))

    assert unanswered.for_new_thread() == [SetDisk("/new"), ClearDisk()]


def test_report_of_a_setting_answers_no_deletion() -> None:
    unanswered = Unanswered()
    for command in (SetMemory(None), SetDisk("/folder"), Forget(A, on_disk=False), Forget(A)):
        unanswered.note_command(command)
    for _ in range(3):
        unanswered.note_event(StatisticsReported(NOTHING_CACHED))
        assert unanswered.has_deletions
    unanswered.note_event(StatisticsReported(NOTHING_CACHED))
    assert not unanswered.has_deletions
