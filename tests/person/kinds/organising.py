"""Actions of the random user on the list: pin, archive, folders, several chats, duplicates, order."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit

from app.conversation.placement import Placement
from app.viewmodels.conversations import ConversationRow, ConversationsModel, FolderRow, Row
from app.widgets.commands import CommandId
from app.widgets.folder_sheet import FolderSheet
from engine.types import ConversationId
from tests.person.kinds.registry import kind
from tests.person.person import CTRL, LEFT, SHIFT, Person

MAX_FOLDERS = 4
MAX_CHATS = 60


def _model(person: Person) -> ConversationsModel:
    model = person.window.sidebar.list.model()
    assert isinstance(model, ConversationsModel)
    return model


def _points(person: Person, kind_of: type[Row]) -> list[tuple[Row, QPoint]]:
    """Return the visible rows of a kind, each with a point to click."""
    chats, model = person.window.sidebar.list, _model(person)
    found: list[tuple[Row, QPoint]] = []
    for at in range(model.rowCount()):
        rect = chats.visualRect(model.index(at, 0))
        row = model.row_at(model.index(at, 0))
        if isinstance(row, kind_of) and chats.viewport().rect().contains(rect):
            found.append((row, rect.topLeft() + QPoint(20, rect.height() // 2)))
    return found if chats.isVisible() else []


def _place(person: Person, conversation_id: ConversationId) -> Placement:
    return person.core.library.listed.summary(conversation_id).placement


def _press_in_list(person: Person, at: QPoint, modifiers: Qt.KeyboardModifier) -> None:
    QTest.mouseClick(person.window.sidebar.list.viewport(), LEFT, modifiers, at)
    person.settle()


@kind("pin or unpin a chat")
def pin(person: Person) -> bool:
    chosen = person.window.sidebar.chosen_chats
    if not person.window.commands[CommandId.PIN].isEnabled():
        return False
    wanted = not all(_place(person, one).pinned for one in chosen)
    person.run(CommandId.PIN)
    assert all(_place(person, one).pinned is wanted for one in chosen)
    return True


@kind("archive a chat")
def archive(person: Person) -> bool:
    """Archive the chosen chats, unless few others would be left, or take them out."""
    chosen = person.window.sidebar.chosen_chats
    left = len(person.core.library.listed.unarchived) - len(chosen)
    if not chosen or (left < 3 and not _place(person, chosen[0]).archived):
        return False
    wanted = not all(_place(person, one).archived for one in chosen)
    person.run(CommandId.ARCHIVE)
    assert all(_place(person, one).archived is wanted for one in chosen)
    return True


@kind("show or leave the archive")
def show_archive(person: Person) -> bool:
    sidebar = person.window.sidebar
    if not sidebar.foot.archived.isVisible():
        return False
    before = sidebar.shows_archived
    person.click(sidebar.foot.archived)
    assert sidebar.shows_archived is not before
    return True


@kind("select several chats")
def select_several(person: Person) -> bool:
    points = [at for _row, at in _points(person, ConversationRow)]
    if len(points) < 2:
        return False
    before = person.current
    _press_in_list(person, person.random.choice(points), CTRL)
    selected = len(person.window.sidebar.list.selected)
    if selected > 1:
        assert person.current == before, "selecting several opened another chat"
    else:
        person.settle()
    return selected > 1


@kind("delete several chats")
def delete_several(person: Person) -> bool:
    chosen = person.window.sidebar.chosen_chats
    if len(chosen) < 2 or len(person.listed) - len(chosen) < 4:
        return False
    person.run(CommandId.DELETE)
    assert not set(chosen) & set(person.listed)
    return True


@kind("leave a selection")
def leave_selection(person: Person) -> bool:
    chats = person.window.sidebar.list
    if len(chats.selected) < 2:
        return False
    chats.setFocus()
    person.press(Qt.Key.Key_Escape)
    return len(chats.selected) < 2


@kind("make a folder")
def make_folder(person: Person) -> bool:
    before = len(person.core.folders.folders)
    if before >= MAX_FOLDERS:
        return False
    person.run(CommandId.NEW_FOLDER)
    sheet = person.window.findChildren(FolderSheet)[-1]
    QTest.keyClicks(sheet.name, f"Folder {person.random.randrange(100)}")
    person.random.choice(sheet.colors).click()
    sheet.prompt.setPlainText(person.random.choice(("", "Be brief.", "Be kind.")))
    (sheet.save_button if person.random.random() < 0.8 else sheet.cancel_button).click()
    person.settle()
    return len(person.core.folders.folders) > before


@kind("open or close a folder")
def toggle_folder(person: Person) -> bool:
    points = _points(person, FolderRow)
    if not points:
        return False
    row, at = person.random.choice(points)
    assert isinstance(row, FolderRow)
    before = person.current
    _press_in_list(person, at, Qt.KeyboardModifier.NoModifier)
    assert (row.folder_id in person.core.organiser.closed_folders) is row.is_open
    assert person.current == before
    return True


@kind("drag chats into a folder")
def drag(person: Person) -> bool:
    chats, points = person.window.sidebar.list, _points(person, FolderRow)
    if not points or not chats.selected or person.window.sidebar.shows_archived:
        return False
    row, at = person.random.choice(points)
    assert isinstance(row, FolderRow)
    dragged = chats.selected
    data = _model(person).mimeData(chats.selectedIndexes())
    move, none = Qt.DropAction.MoveAction, Qt.KeyboardModifier.NoModifier
    QApplication.sendEvent(chats.viewport(), QDragEnterEvent(at, move, data, LEFT, none))
    QApplication.sendEvent(chats.viewport(), QDropEvent(QPointF(at), move, data, LEFT, none))
    person.settle()
    assert all(_place(person, one).folder_id == row.folder_id for one in dragged)
    return True


@kind("begin a chat in a folder")
def begin_in_folder(person: Person) -> bool:
    if not person.core.folders.folders:
        return False
    folder = person.random.choice(person.core.folders.folders)
    person.pane.draft.flush()
    person.core.library.new_chat(folder.folder_id)
    person.settle()
    assert person.core.library.folder_of_current == folder.folder_id
    if folder.system_prompt:
        assert person.conversation.system_prompt == folder.system_prompt
    assert len(person.conversation.documents) == len(folder.documents)
    return True


@kind("rename a folder")
def rename_folder(person: Person) -> bool:
    rows = [row for row, _at in _points(person, FolderRow)]
    if not rows:
        return False
    row, name = person.random.choice(rows), f"Name {person.random.randrange(100)}"
    assert isinstance(row, FolderRow)
    person.window.sidebar.list.edit_row(row)
    editor = QApplication.focusWidget()
    assert isinstance(editor, QLineEdit)
    editor.selectAll()
    QTest.keyClicks(editor, name)
    QTest.keyClick(editor, Qt.Key.Key_Return)
    person.settle()
    folder = person.core.folders.get(row.folder_id)
    assert folder is not None
    assert folder.name == name
    return True


@kind("change a folder")
def change_folder(person: Person) -> bool:
    """Change the colour and the system prompt of a folder, or cancel the sheet."""
    if not person.core.folders.folders:
        return False
    before = person.random.choice(person.core.folders.folders)
    person.window.sidebar.ask_for_folder(before, [])
    sheet = person.window.findChildren(FolderSheet)[-1]
    swatch = person.random.choice(sheet.colors)
    swatch.click()
    prompt = person.random.choice(("", "Be brief.", "Be kind."))
    sheet.prompt.setPlainText(prompt)
    saves = person.random.random() < 0.8
    (sheet.save_button if saves else sheet.cancel_button).click()
    person.settle()
    wanted = replace(before, color=swatch.color, system_prompt=prompt) if saves else before
    assert person.core.folders.get(before.folder_id) == wanted
    return wanted != before


@kind("delete a folder")
def delete_folder(person: Person) -> bool:
    folders = person.core.folders.folders
    if len(folders) < 2:
        return False
    before = person.listed
    person.core.folders.delete(person.random.choice(folders).folder_id)
    person.settle()
    assert set(person.listed) == set(before), "a chat went with its folder"
    if person.random.random() < 0.5:
        person.click(person.window.sidebar.toast.button)
        assert len(person.core.folders.folders) == len(folders)
    return True


@kind("duplicate a chat")
def duplicate(person: Person) -> bool:
    chosen = person.window.sidebar.chosen_chats
    if (
        len(person.listed) > MAX_CHATS
        or not person.window.commands[CommandId.DUPLICATE].isEnabled()
    ):
        return False
    before = set(person.listed)
    person.run(CommandId.DUPLICATE)
    person.wait_until(lambda: len(set(person.listed) - before) == len(chosen))
    person.settle()
    if len(chosen) == 1:
        (made,) = set(person.listed) - before
        person.wait_until(lambda: person.current == made)
    return True


@kind("change the order of the list")
def change_order(person: Person) -> bool:
    commands = (CommandId.BY_ACTIVITY, CommandId.BY_CREATION, CommandId.BY_TITLE)
    person.run(person.random.choice(commands))
    return True


@kind("extend the selection with the keys")
def extend_selection(person: Person) -> bool:
    chats = person.window.sidebar.list
    if not chats.isVisible() or not chats.selected:
        return False
    before = person.current
    chats.setFocus()
    person.press(person.random.choice((Qt.Key.Key_Up, Qt.Key.Key_Down)), SHIFT)
    person.settle()
    if len(chats.selected) > 1:
        assert person.current == before
    return len(chats.selected) > 1
