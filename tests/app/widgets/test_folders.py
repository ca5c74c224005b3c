"""Tests of folders: made, filled by drag and menu, opened and closed, changed, deleted, exported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt
from PySide6.QtGui import QDragEnterEvent, QDragMoveEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QLineEdit

from app.conversation.folder import Folder, FolderColor
from app.conversation.placement import FolderId
from app.conversation.preset import Preset
from app.conversation.tree import Setup
from app.viewmodels.conversations import ConversationsModel, FolderRow
from app.widgets.commands import CommandId
from app.widgets.folder_sheet import FolderSheet
from app.widgets.menu import Menu
from tests.fakes.stage import CTRL, Key, Stage

# The offscreen platform logs these messages for every popup.
pytestmark = pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True)


def make_chats(stage: Stage, *titles: str) -> None:
    for title in titles:
        stage.rig.origin.time_s += 1.0
        stage.run(CommandId.NEW_CHAT)
        stage.chat(title, "Yes.")


def make_folder(stage: Stage, name: str = "Work") -> Folder:
    made = stage.rig.core.folders.create(Folder(folder_id=FolderId(""), name=name))
    stage.settle()
    return made


def point(stage: Stage, text: str) -> QPoint:
    rect = stage.list.visualRect(stage.list.model().index(stage.rows.index(text), 0))
    return rect.topLeft() + QPoint(20, rect.height() // 2)


def click(stage: Stage, text: str, modifiers: Qt.KeyboardModifier | None = None) -> None:
    QTest.mouseClick(
        stage.list.viewport(),
        Qt.MouseButton.LeftButton,
        modifiers or Qt.KeyboardModifier.NoModifier,
        point(stage, text),
    )
    stage.settle()


def drag(stage: Stage, *, to: str) -> QMimeData:
    """Drag the selected chats onto a row."""
    viewport, model = stage.list.viewport(), stage.list.model()
    assert isinstance(model, ConversationsModel)
    data = model.mimeData(stage.list.selectedIndexes())
    at, move = point(stage, to), Qt.DropAction.MoveAction
    left, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    QApplication.sendEvent(viewport, QDragEnterEvent(at, move, data, left, none))
    QApplication.sendEvent(viewport, QDragMoveEvent(at, move, data, left, none))
    stage.list.grab()
    QApplication.sendEvent(viewport, QDropEvent(QPointF(at), move, data, left, none))
    stage.settle()
    return data


def open_menu(stage: Stage, text: str) -> Menu:
    rect = stage.list.visualRect(stage.list.model().index(stage.rows.index(text), 0))
    at = QPoint(rect.right() - 24, rect.center().y())
    QTest.mouseClick(stage.list.viewport(), Qt.MouseButton.LeftButton, pos=at)
    return next(menu for menu in stage.list.findChildren(Menu) if menu.isVisible())


def choose(stage: Stage, row: str, *path: str) -> None:
    """Choose an entry of the menu of a row, in a submenu if the path has two parts."""
    top = menu = open_menu(stage, row)
    for text in path:
        action = next(one for one in menu.actions() if one.text() == text)
        submenu = action.menu()
        if isinstance(submenu, Menu):
            menu = submenu
        else:
            top.hide()
            action.trigger()
    top.close()
    stage.settle()


def sheet(stage: Stage) -> FolderSheet:
    (found,) = stage.window.findChildren(FolderSheet)
    return found


def test_new_folder_command_makes_a_folder_with_name_and_colour(stage: Stage) -> None:
    stage.run(CommandId.NEW_FOLDER)
    QTest.keyClicks(sheet(stage).name, "Work")
    swatch = next(one for one in sheet(stage).colors if one.color is FolderColor.GREEN)
    QTest.mouseClick(swatch, Qt.MouseButton.LeftButton)
    QTest.keyClick(sheet(stage).name, Key.Key_Return)
    stage.settle()
    assert stage.rows == ["FOLDERS", "Work"]
    (folder,) = stage.rig.stored(lambda store: store.folders.load())
    assert (folder.name, folder.color) == ("Work", FolderColor.GREEN)
    stage.run(CommandId.UNDO)
    assert stage.rows == []


def test_dragged_chats_go_into_the_folder_and_out_of_it(stage: Stage) -> None:
    make_chats(stage, "One", "Two", "Three")
    folder = make_folder(stage)
    click(stage, "One", CTRL)
    data = drag(stage, to="Work")
    assert data.text() == "Three\nOne"
    assert stage.rows == ["FOLDERS", "Work", "Three", "One", "TODAY", "Two"]
    assert stage.window.sidebar.toast.text == "Moved 2 chats to “Work”"
    stored = stage.rig.stored(lambda store: store.summaries())
    assert [one.placement.folder_id for one in stored] == [
        folder.folder_id,
        None,
        folder.folder_id,
    ]
    click(stage, "Two")
    drag(stage, to="One")
    assert stage.rows == ["FOLDERS", "Work", "Three", "Two", "One"], "dropped on a chat inside"
    stage.run(CommandId.UNDO)
    click(stage, "One")
    drag(stage, to="TODAY")
    assert stage.rows == ["FOLDERS", "Work", "Three", "TODAY", "Two", "One"]


def test_chats_dropped_on_a_pinned_one_are_pinned_and_dropped_below_lose_the_pin(
    stage: Stage,
) -> None:
    make_chats(stage, "One", "Two")
    stage.run(CommandId.PIN)
    click(stage, "One")
    drag(stage, to="Two")
    assert stage.rows == ["PINNED", "Two", "One"]
    drag(stage, to="PINNED")
    assert stage.rows == ["PINNED", "Two", "One"]
    make_folder(stage)
    drag(stage, to="Work")
    drag(stage, to="FOLDERS")
    assert stage.rows == ["PINNED", "Two", "FOLDERS", "Work", "TODAY", "One"]


def test_moving_to_a_new_folder_makes_it_and_moves(stage: Stage) -> None:
    make_chats(stage, "One", "Two")
    choose(stage, "One", "Move to Folder", "New Folder…")
    sheet(stage).name.setText("Home & Work")
    sheet(stage).save_button.click()
    stage.settle()
    assert stage.rows == ["FOLDERS", "Home & Work", "One", "TODAY", "Two"]
    choose(stage, "Two", "Move to Folder", "Home && Work")
    assert stage.rows == ["FOLDERS", "Home & Work", "Two", "One"]
    choose(stage, "Two", "Move to Folder", "No Folder")
    assert stage.rows == ["FOLDERS", "Home & Work", "One", "TODAY", "Two"]


def test_click_on_a_folder_hides_its_chats_and_opens_none(stage: Stage) -> None:
    make_chats(stage, "One", "Two")
    folder = make_folder(stage)
    stage.rig.core.organiser.move(
        [stage.rig.library.listed.unarchived[1].conversation_id], folder.folder_id
    )
    click(stage, "Work")
    assert stage.rows == ["FOLDERS", "Work", "TODAY", "Two"]
    assert stage.texts[0] == "Two"
    assert stage.rig.core.preferences.value.closed_folders == (folder.folder_id,)
    click(stage, "Work")
    assert "One" in stage.rows


def test_keys_reach_open_and_close_a_folder(stage: Stage) -> None:
    make_chats(stage, "One")
    make_folder(stage)
    click(stage, "One")
    QTest.keyClick(stage.list, Key.Key_Up)
    row = stage.list.row
    assert isinstance(row, FolderRow)
    for key, is_open in ((Key.Key_Left, False), (Key.Key_Right, True), (Key.Key_Return, False)):
        QTest.keyClick(stage.list, key)
        stage.settle()
        row = stage.list.row
        assert isinstance(row, FolderRow)
        assert row.is_open is is_open
    assert stage.texts[0] == "One"


def test_folder_is_renamed_in_its_row(stage: Stage) -> None:
    make_folder(stage)
    menu = open_menu(stage, "Work")
    next(action for action in menu.actions() if action.text() == "Rename").trigger()
    menu.close()
    editor = stage.list.findChild(QLineEdit)
    assert isinstance(editor, QLineEdit)
    assert editor.text() == "Work"
    editor.selectAll()
    QTest.keyClicks(editor, "Home")
    QTest.keyClick(editor, Key.Key_Return)
    stage.settle()
    assert stage.rows == ["FOLDERS", "Home"]
    stage.run(CommandId.UNDO)
    assert stage.rows == ["FOLDERS", "Work"]


def test_new_chat_in_a_folder_has_its_prompt_and_preset(stage: Stage) -> None:
    stage.rig.core.presets.save_preset(
        Preset(name="Short", system_prompt="Be short.", setup=Setup(max_tokens=9))
    )
    make_folder(stage)
    choose(stage, "Work", "Folder Settings…")
    sheet(stage).prompt.setPlainText("Be exact.")
    menu = sheet(stage).preset.menu()
    next(action for action in menu.actions() if action.text() == "Short").trigger()
    sheet(stage).save_button.click()
    stage.settle()
    choose(stage, "Work", "New Chat in Folder")
    assert stage.pane.empty.heading.title.text() == "New chat in “Work”"
    assert stage.rows == ["FOLDERS", "Work"]
    stage.chat("One", "Yes.")
    assert stage.rows == ["FOLDERS", "Work", "One"]
    begun = stage.rig.current
    assert (begun.system_prompt, begun.setup.max_tokens) == ("Be exact.", 9)
    (stored,) = stage.rig.stored(lambda store: store.summaries())
    assert stored.placement.folder_id is not None
    stage.run(CommandId.NEW_CHAT)
    assert stage.rig.current.system_prompt == ""
    assert stage.pane.empty.heading.title.text() == "What are you working on?"


def test_new_chat_in_a_folder_takes_changes_of_the_folder_until_its_first_change(
    stage: Stage,
) -> None:
    folder = make_folder(stage)
    stage.rig.library.new_chat(folder.folder_id)
    stage.rig.core.folders.change(
        Folder(folder_id=folder.folder_id, name="Work", system_prompt="Be exact.")
    )
    assert stage.rig.current.system_prompt == "Be exact."
    stage.chat("One", "Yes.")
    stage.rig.core.folders.change(
        Folder(folder_id=folder.folder_id, name="Work", system_prompt="Be kind.")
    )
    assert stage.rig.current.system_prompt == "Be exact.", "the chat would be read again"


def test_deleted_folder_leaves_its_chats_and_undo_files_them_again(stage: Stage) -> None:
    make_chats(stage, "One", "Two")
    folder = make_folder(stage)
    stage.rig.core.organiser.move([stage.current], folder.folder_id)
    choose(stage, "Work", "Delete Folder")
    assert stage.rows == ["TODAY", "Two", "One"]
    assert stage.window.sidebar.toast.text == "Deleted folder “Work”. Its chats stay."
    stage.run(CommandId.UNDO)
    assert stage.rows == ["FOLDERS", "Work", "Two", "TODAY", "One"]
    (stored,) = stage.rig.stored(lambda store: store.folders.load())
    assert stored.deleted_at is None


def test_fork_and_duplicate_are_in_the_folder_of_the_original(stage: Stage) -> None:
    make_chats(stage, "One")
    folder = make_folder(stage)
    stage.rig.core.organiser.move([stage.current], folder.folder_id)
    stage.rig.origin.time_s += 1.0
    stage.run(CommandId.DUPLICATE)
    assert stage.rows == ["FOLDERS", "Work", "One (copy)", "One"]


def test_folder_with_its_archived_chats_is_exported(stage: Stage, tmp_path: Path) -> None:
    make_chats(stage, "One", "Two", "Three")
    folder = make_folder(stage)
    ids = [one.conversation_id for one in stage.rig.library.listed.unarchived[:2]]
    stage.rig.core.organiser.move(ids, folder.folder_id)
    stage.rig.core.organiser.archive(ids[1:], archived=True)
    choose(stage, "Work", "Export Folder…")
    (dialog,) = stage.window.findChildren(QFileDialog)
    assert dialog.selectedFiles()[0].endswith("Work.json")
    file = tmp_path / "Work.json"
    dialog.fileSelected.emit(str(file))
    dialog.close()
    stage.wait_until(file.exists)
    assert {one["title"] for one in json.loads(file.read_text())} == {"Three", "Two"}


def test_folders_are_there_after_a_restart(stage: Stage, tmp_path: Path) -> None:
    make_chats(stage, "One")
    folder = make_folder(stage)
    stage.rig.core.organiser.move([stage.current], folder.folder_id)
    stage.rig.core.organiser.pin([stage.current], pinned=False)
    stage.settle()
    stage.close()
    again = Stage(tmp_path)
    again.settle()
    assert again.rows == ["FOLDERS", "Work", "One"]
    again.close()
