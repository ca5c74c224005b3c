"""Deletion of cached state on disk while the engine thread that kept it is gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.cache.disk.folder import FolderInUseError, FolderLock, delete_all
from engine.cache_figures import NOTHING_CACHED, CacheReport
from engine.disk_deletion import delete, with_lock
from engine.events import Answered
from engine.problem import Problem
from engine.questions import Ask, ClearDisk, Forget, ReportCache
from engine.types import ConversationId
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
    unanswered, ask = Unanswered(), Ask(ClearDisk())
    unanswered.note_command(ask)
    unanswered.take_failed(Problem(title="", cause="", advice="", details=""))

    assert unanswered.take_questions() == [ask]


def test_only_the_answer_to_a_deletion_ends_it() -> None:
    unanswered = Unanswered()
    asks = [Ask(ReportCache()), Ask(Forget(A, on_disk=False)), Ask(Forget(A))]
    for ask in asks:
        unanswered.note_command(ask)
    for ask in asks:
        assert unanswered.has_deletions
        unanswered.note_event(Answered(ask.question_id, CacheReport(NOTHING_CACHED)))
    assert not unanswered.has_deletions
