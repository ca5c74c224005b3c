"""Tests of the recently deleted chats and folders: restore them, or delete them for good, also after
a restart.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest

from app.conversation.folder import Folder
from app.conversation.placement import FolderId
from app.store.backups import make_backup
from app.store.place import DATABASE
from app.theme.tokens import LIGHT
from app.widgets.button import Button
from app.widgets.commands import CommandId
from app.widgets.deleted_sheet import DeletedSheet
from engine.questions import Forget
from tests.app.conftest import MakeStage
from tests.fakes.sheets import press, sheet_in
from tests.fakes.stage import CTRL, Key, Stage

# The offscreen platform logs this message for every sheet.
pytestmark = pytest.mark.qt_log_ignore("does not support raise", extend=True)

LEFT = Qt.MouseButton.LeftButton
DAY_S = 24 * 3600


def delete_chats(stage: Stage, *titles: str) -> None:
    for title in titles:
        stage.run(CommandId.NEW_CHAT)
        stage.rig.origin.time_s += 1
        stage.chat(title, "Yes")
    for title in titles:
        stage.rig.origin.time_s += 1
        stage.click_row(title)
        stage.run(CommandId.DELETE)


def opened(stage: Stage) -> DeletedSheet:
    QTest.mouseClick(stage.window.sidebar.foot.deleted, LEFT)
    return stage.window.findChildren(DeletedSheet)[-1]


def titles(sheet: DeletedSheet) -> list[str]:
    return [sheet.list.item(at).text() for at in range(sheet.list.count())]


def confirm(sheet: DeletedSheet, word: str) -> None:
    press(sheet_in(sheet), word)


def test_button_is_shown_only_while_there_are_deleted_chats(stage: Stage) -> None:
    button = stage.window.sidebar.foot.deleted
    assert not button.isVisible()
    assert not stage.window.commands[CommandId.RECENTLY_DELETED].isEnabled()
    delete_chats(stage, "One")
    assert button.isVisible()
    assert stage.window.commands[CommandId.RECENTLY_DELETED].isEnabled()
    stage.run(CommandId.UNDO)
    assert not button.isVisible()


@pytest.mark.slow
def test_deleted_chat_is_restored_after_a_restart(make_stage: MakeStage) -> None:
    stage = make_stage()
    delete_chats(stage, "One", "Two")
    stage.close()
    stage = make_stage()
    stage.rig.origin.time_s += 3 * DAY_S
    stage.settle()
    sheet = opened(stage)
    assert titles(sheet) == ["Two", "One"]
    assert [row.left for row in sheet.selected] == ["27 days left"]
    sheet.list.setCurrentRow(1)
    QTest.mouseClick(sheet.restore_button, LEFT)
    stage.wait_until(lambda: stage.texts == ["One", "Yes"])
    assert titles(sheet) == ["Two"]
    assert stage.rows == ["PREVIOUS 7 DAYS", "One"]


@pytest.mark.slow
def test_undo_after_a_restart_restores_a_chat_deleted_just_now(make_stage: MakeStage) -> None:
    stage = make_stage()
    delete_chats(stage, "One")
    stage.close()
    stage = make_stage()
    stage.settle()
    stage.run(CommandId.UNDO)
    stage.wait_until(lambda: stage.texts == ["One", "Yes"])
    assert not stage.window.sidebar.foot.deleted.isVisible()


@pytest.mark.slow
def test_delete_now_asks_and_removes_the_chats_for_good(make_stage: MakeStage) -> None:
    stage = make_stage()
    delete_chats(stage, "One", "Two", "Three")
    sheet = opened(stage)
    sheet.list.setFocus()
    QTest.keyClick(sheet.list, Key.Key_A, CTRL)
    assert len(sheet.selected) == 3
    QTest.mouseClick(sheet.delete_button, LEFT)
    box = sheet_in(sheet)
    assert box.windowTitle() == "Permanently delete 3 chats?"
    confirm(sheet, "Cancel")
    assert len(titles(sheet)) == 3
    sheet.list.setCurrentRow(0)
    QTest.keyClick(sheet.list, Key.Key_Backspace)
    assert sheet_in(sheet).windowTitle() == "Permanently delete “Three”?"
    confirm(sheet, "Delete")
    stage.settle()
    assert titles(sheet) == ["Two", "One"]
    assert [type(one) for one in stage.engine.questions if isinstance(one, Forget)] == [Forget]
    stage.run(CommandId.UNDO)
    assert stage.rows == ["TODAY", "Two"], "the removed chat cannot be undone, the one before can"
    stage.close()
    stage = make_stage()
    stage.settle()
    assert titles(opened(stage)) == ["One"]


def test_question_tells_of_a_backup_only_if_it_contains_the_chats(stage: Stage) -> None:
    stage.chat("Old", "Yes")
    stage.settle()
    database = stage.core.data_folder.folder / DATABASE
    assert make_backup(database, now=stage.rig.origin.time_s, stop=Event())
    delete_chats(stage, "New")
    stage.rig.origin.time_s += 1
    stage.click_row("Old")
    stage.run(CommandId.DELETE)
    sheet = opened(stage)
    found = stage.core.recently_deleted
    stage.wait_until(lambda: found.count_in_backups(found.items) == 1)

    def sentence(*rows: int) -> str:
        sheet.list.clearSelection()
        for row in rows:
            sheet.list.item(row).setSelected(True)
        QTest.mouseClick(sheet.delete_button, LEFT)
        text = sheet_in(sheet).text
        confirm(sheet, "Cancel")
        return text

    assert titles(sheet) == ["Old", "New"]
    assert sentence(1) == "You can’t undo this."
    end = "stays in the daily backups until newer ones replace them."
    assert sentence(0) == f"You can’t undo this. A copy {end}"
    assert sentence(0, 1) == f"You can’t undo this. A copy of some of them {end}"


def restore_selected(sheet: DeletedSheet) -> None:
    QTest.mouseClick(sheet.restore_button, LEFT)


def delete_selected(sheet: DeletedSheet) -> None:
    QTest.mouseClick(sheet.delete_button, LEFT)
    confirm(sheet, "Delete")


@pytest.mark.parametrize("act", [restore_selected, delete_selected])
def test_selected_chats_leave_the_sheet_in_one_step(
    stage: Stage, act: Callable[[DeletedSheet], None]
) -> None:
    delete_chats(stage, "One", "Two", "Three")
    deleted, numbers = stage.core.recently_deleted, list[int]()
    deleted.changed.connect(lambda: numbers.append(len(deleted.items)))
    sheet = opened(stage)
    sheet.list.setFocus()
    QTest.keyClick(sheet.list, Key.Key_A, CTRL)
    act(sheet)
    stage.settle()
    assert numbers == [0]


def delete_folder(stage: Stage, name: str, chat: str) -> FolderId:
    """Make a folder with a chat in it, and delete the folder."""
    core = stage.rig.core
    made = core.folders.create(Folder(folder_id=FolderId(""), name=name))
    stage.run(CommandId.NEW_CHAT)
    stage.chat(chat, "Yes")
    core.organiser.move([core.library.current], made.folder_id)
    stage.rig.origin.time_s += 1
    core.folders.delete(made.folder_id)
    stage.settle()
    return made.folder_id


@pytest.mark.slow
def test_deleted_folder_is_restored_after_a_restart_with_its_chats(make_stage: MakeStage) -> None:
    stage = make_stage()
    delete_folder(stage, "Work", "One")
    delete_chats(stage, "Two")
    stage.close()
    stage = make_stage()
    stage.settle()
    assert stage.rows == ["TODAY", "One"]
    sheet = opened(stage)
    assert titles(sheet) == ["Two", "Work"]
    spoken = sheet.list.item(1).data(Qt.ItemDataRole.AccessibleTextRole)
    assert spoken == "Work, folder, 30 days left"
    sheet.list.setCurrentRow(1)
    QTest.mouseClick(sheet.restore_button, LEFT)
    stage.settle()
    assert titles(sheet) == ["Two"]
    assert stage.rows == ["FOLDERS", "Work", "One"]
    stage.run(CommandId.UNDO)
    stage.settle()
    assert sorted(stage.rows) == ["FOLDERS", "One", "TODAY", "Two", "Work"]


def test_question_about_chats_and_a_folder_counts_both_and_delete_is_red(stage: Stage) -> None:
    delete_chats(stage, "One", "Two")
    delete_folder(stage, "Work", "Three")
    sheet = opened(stage)
    sheet.list.selectAll()
    QTest.mouseClick(sheet.delete_button, LEFT)
    box = sheet_in(sheet)
    assert box.windowTitle() == "Permanently delete 2 chats and 1 folder?"
    assert box.text.startswith("Other chats that were in a deleted folder are kept.")
    button = next(one for one in box.findChildren(Button) if one.text() == "Delete")
    assert button.palette().buttonText().color() == QColor(LIGHT.error.ink)
    confirm(sheet, "Cancel")


@pytest.mark.slow
def test_folder_that_is_deleted_for_good_does_not_come_back(make_stage: MakeStage) -> None:
    stage = make_stage()
    folder_id = delete_folder(stage, "Work", "One")
    sheet = opened(stage)
    QTest.mouseClick(sheet.delete_button, LEFT)
    box = sheet_in(sheet)
    assert box.windowTitle() == "Permanently delete “Work”?"
    assert box.text.startswith("Chats that were in a deleted folder are kept.")
    confirm(sheet, "Delete")
    stage.settle()
    for _ in range(3):
        stage.run(CommandId.UNDO)
    assert "Work" not in stage.rows
    stage.close()
    stage = make_stage()
    stage.settle()
    assert not stage.window.sidebar.foot.deleted.isVisible()
    assert stage.rig.core.folders.get(folder_id) is None
    assert stage.rows == ["TODAY", "One"]


def test_folder_that_is_removed_while_the_folders_load_does_not_come_back(stage: Stage) -> None:
    folder_id = delete_folder(stage, "Work", "One")
    folders = stage.rig.core.folders
    folders.load_again()
    folders.remove(folder_id)
    stage.settle()
    assert folders.recently_deleted == []


def test_sheet_closes_when_nothing_is_left(stage: Stage) -> None:
    delete_chats(stage, "One")
    sheet = opened(stage)
    QTest.keyClick(sheet.list, Key.Key_Delete)
    confirm(sheet, "Delete")
    stage.settle()
    assert not stage.window.sidebar.foot.deleted.isVisible()
    assert stage.window.findChildren(DeletedSheet) == []
