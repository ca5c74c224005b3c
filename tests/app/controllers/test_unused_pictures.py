"""Files of pictures: removed when no message, draft or backup names them, and not before."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from app.conversation.attachments import PictureContent
from app.store.backups import backups_of
from app.store.pictures import UNUSED_KEPT_S
from engine.problem import Problem
from tests.app.store.test_attachments import photo
from tests.fakes.stage import Stage


@pytest.fixture
def stage(qapp: QApplication, tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path, sees=True)
    # The pictures that are used at the start are never swept. Tests attach theirs later.
    timer = stage.core.unused_pictures._timer  # pyright: ignore[reportPrivateUsage]
    stage.wait_until(timer.isActive)
    yield stage
    stage.close()


CONTENT = PictureContent(b"original", b"view", b"thumbnail")


def names(stage: Stage) -> set[str]:
    """Return the first characters of the names of all stored pictures, without their views."""
    return {path.name[:2] for path in stage.core.pictures.folder.glob("*.jpg")}


def add_files(stage: Stage, *numbers: int) -> None:
    """Store the files of pictures, as if that was long ago."""
    for number in numbers:
        picture = photo(number).picture
        assert picture is not None
        stage.core.pictures.add(picture, CONTENT)
    for path in stage.core.pictures.folder.iterdir():
        then = path.stat().st_mtime - UNUSED_KEPT_S - 60
        os.utime(path, (then, then))


def attach(stage: Stage, *numbers: int) -> None:
    files = tuple(photo(number) for number in numbers)
    stage.core.draft_files.set(stage.core.library.current, files)
    stage.settle()


def rest(stage: Stage) -> None:
    """Wait until the store has run the steps that it runs aside, and those that follow them."""
    for _ in range(2):
        done: list[bool] = []
        stage.core.store.run_aside(lambda _store: True, done.append)
        stage.wait_until(lambda done=done: bool(done))


def sweep(stage: Stage) -> None:
    stage.core.unused_pictures.sweep()
    rest(stage)


def delete_for_good(stage: Stage) -> None:
    chat = stage.core.library.current
    stage.core.deletions.delete_all((chat,))
    stage.settle()
    stage.core.library.deleted.remove_all((chat,))
    rest(stage)


def database(stage: Stage) -> Path:
    return stage.rig.settings_path.with_name("conversations.db")


def test_sweep_keeps_pictures_of_messages_and_drafts(stage: Stage) -> None:
    add_files(stage, 1, 2, 3)
    attach(stage, 1)
    stage.chat("What is this?", "A house.")
    attach(stage, 2)

    sweep(stage)

    assert names(stage) == {"01", "02"}


def test_pictures_go_with_the_last_chat_that_has_them(stage: Stage) -> None:
    add_files(stage, 1, 2, 3)
    attach(stage, 1, 2)
    stage.chat("What is this?", "A house.")
    stage.core.library.new_chat()
    stage.settle()
    attach(stage, 2)
    stage.chat("And this?", "A tree.")

    delete_for_good(stage)
    assert names(stage) == {"01", "02", "03"}, "the other chat has it"
    stage.click_row("What is this?")
    delete_for_good(stage)

    stage.wait_until(lambda: names(stage) == {"03"})  # a later sweep takes what no chat had


def test_picture_of_a_backup_stays_until_the_backup_is_gone(stage: Stage) -> None:
    add_files(stage, 1)
    attach(stage, 1)
    stage.chat("What is this?", "A house.")
    stage.core.backups.look()
    stage.wait_until(lambda: not stage.core.backups.is_running)
    (backup,) = backups_of(database(stage))
    delete_for_good(stage)
    sweep(stage)
    assert names(stage) == {"01"}

    backup.unlink()
    sweep(stage)

    stage.wait_until(lambda: not names(stage))


def test_nothing_is_swept_while_a_backup_cannot_be_read(stage: Stage) -> None:
    add_files(stage, 1)
    stage.core.backups.look()
    stage.wait_until(lambda: not stage.core.backups.is_running)
    (backup,) = backups_of(database(stage))
    backup.write_bytes(b"\xa5" * 5000)

    sweep(stage)

    assert names(stage) == {"01"}


def test_picture_taken_out_of_a_draft_in_this_run_stays(stage: Stage) -> None:
    add_files(stage, 1)
    attach(stage, 1)
    # The app starts with this draft, and the sweep comes a minute later.
    stage.core.store.opened.emit()
    stage.settle()
    attach(stage)

    sweep(stage)

    assert names(stage) == {"01"}, "an undo brings it back"


def test_nothing_is_swept_after_a_rescue(stage: Stage) -> None:
    add_files(stage, 1)
    stage.core.store.rescued.emit(Problem(title="Rescued", cause="It was damaged.", advice=""))

    sweep(stage)

    assert names(stage) == {"01"}
