"""The data folder in the settings: move it, and delete the old copy."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog

from app.conversation.tree import set_draft_attachments
from app.store.pictures import UNUSED_KEPT_S
from app.theme.icons import Icon
from app.widgets.commands import CommandId
from app.widgets.data_folder_dialogs import MoveSheet
from app.widgets.settings_data import DataPage
from app.widgets.settings_window import SettingsWindow
from tests.app.conftest import MakeStage
from tests.fakes.fake_engine import FACTS
from tests.fakes.sheets import press, sheet_in
from tests.fakes.stage import Stage
from tests.fakes.stored_pictures import stored_picture

pytestmark = pytest.mark.qt_log_ignore("does not support raise", extend=True)
LEFT = Qt.MouseButton.LeftButton


def opened(stage: Stage) -> DataPage:
    stage.run(CommandId.SETTINGS)
    return page_of(stage)


def page_of(stage: Stage) -> DataPage:
    window = stage.window.findChild(SettingsWindow)
    assert isinstance(window, SettingsWindow)
    QTest.mouseClick(window.tabs[Icon.ADVANCED], LEFT)
    return window.advanced.data


def move(stage: Stage, page: DataPage, folder: Path) -> None:
    choose(stage, page, folder)
    stage.settle()


def choose(stage: Stage, page: DataPage, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    QTest.mouseClick(page.move_button, LEFT)
    dialog = page.window().findChildren(QFileDialog)[-1]
    dialog.fileSelected.emit(str(folder))
    dialog.close()
    stage.wait_until(lambda: not stage.core.data_folder.is_moving)


@pytest.mark.slow
def test_moved_chats_are_used_at_once_and_by_the_next_start(
    make_stage: MakeStage, tmp_path: Path
) -> None:
    stage = make_stage()
    stage.chat("Before", "Yes")
    page = opened(stage)
    assert page.folder.text() == str(tmp_path)
    assert not page.delete_old.isVisible()
    target = tmp_path / "other"

    move(stage, page, target)

    assert page.folder.text() == str(target)
    assert page.old.text() == f"The old copy is still in {tmp_path}."
    stage.chat("After", "Yes")
    stage.close()
    stage = make_stage()
    stage.wait_until(lambda: "Before" in stage.rows)
    stage.click_row("Before")
    assert stage.core.data_folder.folder == target
    stage.wait_until(lambda: stage.texts == ["Before", "Yes", "After", "Yes"])


def test_pictures_move_and_the_engine_reads_them_in_the_new_folder(
    make_stage: MakeStage, tmp_path: Path
) -> None:
    stage = make_stage()
    stage.engine.facts = replace(FACTS, sees=True)
    stage.core.models.load_again()
    stage.settle()
    picture = stored_picture(stage.core.pictures)
    stage.core.chat.apply(set_draft_attachments(stage.core.desk.get(stage.current), (picture,)))
    stage.send("What is this?")
    stage.answer("Hills.")
    stored = sorted(path.name for path in stage.core.pictures.folder.iterdir())
    page = opened(stage)

    move(stage, page, tmp_path / "other")

    assert stage.engine.wanted.picture_folder == str(tmp_path / "other" / "pictures")
    assert stage.core.pictures.folder == tmp_path / "other" / "pictures"
    QTest.mouseClick(page.delete_old, LEFT)
    press(sheet_in(page.window()), "Delete")
    stage.wait_until(lambda: not page.delete_old.isVisible())
    assert not (tmp_path / "pictures").exists()
    stage.close()
    stage = make_stage()
    stage.wait_until(lambda: "What is this?" in stage.rows)
    age(stage.core.pictures.folder)
    stage.core.unused_pictures.sweep()
    done: list[bool] = []
    stage.core.store.run_aside(lambda _store: True, done.append)
    stage.wait_until(lambda: bool(done))
    stage.click_row("What is this?")
    stage.wait_until(lambda: "Hills." in stage.texts)
    (chip,) = stage.items[0].files
    assert chip.picture == picture.picture
    assert sorted(path.name for path in stage.core.pictures.folder.iterdir()) == stored


def age(folder: Path) -> None:
    """Make files as old as those that a sweep may delete."""
    for path in folder.iterdir():
        then = path.stat().st_mtime - UNUSED_KEPT_S - 60
        os.utime(path, (then, then))


def test_old_copy_is_deleted_after_a_question(stage: Stage, tmp_path: Path) -> None:
    stage.chat("A question", "Yes")
    page = opened(stage)
    move(stage, page, tmp_path / "other")
    QTest.mouseClick(page.delete_old, LEFT)
    assert (tmp_path / "conversations.db").exists()

    press(sheet_in(page.window()), "Delete")

    stage.wait_until(lambda: not page.delete_old.isVisible())
    assert not (tmp_path / "conversations.db").exists()


def test_folder_is_not_moved_while_an_answer_is_written(stage: Stage, tmp_path: Path) -> None:
    stage.send("A question")
    stage.engine.write("An")
    stage.settle()
    page = opened(stage)

    move(stage, page, tmp_path / "other")

    assert stage.core.data_folder.folder == tmp_path
    assert stage.window.toast.text.startswith("An answer or an import is running.")


def test_failed_move_keeps_the_folder_and_the_chats(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.store.place._SPARE_BYTES", 1 << 62)
    stage.chat("A question", "Yes")
    page = opened(stage)

    move(stage, page, tmp_path / "other")
    stage.chat("Another", "Yes")

    assert stage.core.data_folder.folder == tmp_path
    assert stage.stored(lambda store: len(store.load(stage.current).nodes)) == 4
    assert stage.window.toast.isVisible()


def test_move_while_the_disk_is_unplugged_is_refused(make_stage: MakeStage, tmp_path: Path) -> None:
    disk = tmp_path / "unplugged"
    (tmp_path / "location.json").write_text(json.dumps({"folder": str(disk)}))
    stage = make_stage()
    stage.wait_until(lambda: stage.core.store.is_lost)
    stage.window.commands[CommandId.SETTINGS].trigger()

    choose(stage, page_of(stage), tmp_path / "other")

    assert stage.core.data_folder.folder == disk
    assert stage.window.toast.text.startswith("Your chats could not be read or saved.")
    assert not any(sheet.isVisible() for sheet in stage.window.findChildren(MoveSheet))
