"""Actions of the random user on chats: begin, open, rename, delete, restore, keep ready."""

from __future__ import annotations

import re

from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QPushButton

from app.conversation.folder import Folder
from app.conversation.tree import DeletedConversation
from app.viewmodels.conversations import ConversationRow, ConversationsModel
from app.viewmodels.search import FoundRow
from app.viewmodels.search_filters import NO_FILTERS, InArchive
from app.viewmodels.switcher import EntryKind, Found
from app.widgets.commands import CommandId
from app.widgets.deleted_sheet import DeletedSheet
from app.widgets.menu import Menu
from app.widgets.text_window import FileText
from engine.types import Role
from tests.fakes.sheets import press, sheet_in
from tests.person.kinds.registry import kind
from tests.person.person import CTRL, Person


@kind("begin a new chat")
def new_chat(person: Person) -> bool:
    if not person.items:
        return False
    person.press(Qt.Key.Key_N, CTRL)
    assert not person.items
    return True


def _rows(person: Person) -> list[QPoint]:
    """Return a point to click in each visible row of the chat list, except the shown chat."""
    chats, model = person.window.sidebar.list, person.window.sidebar.list.model()
    assert isinstance(model, ConversationsModel)
    points: list[QPoint] = []
    for at in range(model.rowCount()):
        index = model.index(at, 0)
        row = model.row_at(index)
        rect = chats.visualRect(index)
        is_other = isinstance(row, ConversationRow) and row.conversation_id != person.current
        if is_other and chats.viewport().rect().contains(rect):
            points.append(rect.topLeft() + QPoint(20, rect.height() // 2))
    return points


@kind("open a chat with the mouse")
def open_chat(person: Person) -> bool:
    points = _rows(person) if person.window.sidebar.isVisible() else []
    if not points:
        return False
    before = person.current
    person.click(person.window.sidebar.list.viewport(), person.random.choice(points))
    person.wait_until(lambda: person.current != before)
    return True


@kind("search all chats")
def search_chats(person: Person) -> bool:
    """Search for a word of a message, open the first result, and end the search."""
    questions = [item.text for item in person.items if item.role is Role.USER]
    known = [word for text in questions for word in re.findall(r"\b[a-z]{3,20}\b", text)]
    if person.answers or not known:
        return False
    person.press(Qt.Key.Key_F, CTRL | Qt.KeyboardModifier.ShiftModifier)
    sidebar = person.window.sidebar
    assert sidebar.search.edit.hasFocus()
    QTest.keyClicks(sidebar.search.edit, person.random.choice(known))
    person.settle()
    person.settle()  # the letters that were typed during the first search
    assert sidebar.results.isVisible()
    person.press(Qt.Key.Key_Return)
    person.settle()
    # Usually the first message or chat. The results are found again if a chat changes meanwhile.
    assert sidebar.results.currentRow() >= 0, "no result is selected"
    if isinstance(QApplication.focusWidget(), FileText):
        person.press(Qt.Key.Key_Escape)  # closes the window with the text of the found file
        person.window.activateWindow()  # as a window manager does
        person.settle()
    focused = QApplication.focusWidget()
    person.press(Qt.Key.Key_Escape)
    assert sidebar.list.isVisible(), f"Esc in {focused} did not end the search"
    return True


@kind("search with a filter")
def search_with_filter(person: Person) -> bool:
    """Choose an entry of the menu of filters during a search, and end the search."""
    person.press(Qt.Key.Key_F, CTRL | Qt.KeyboardModifier.ShiftModifier)
    search, filters = person.window.sidebar.search, person.window.sidebar.filters
    QTest.keyClicks(search.edit, person.random.choice(("the", "you", "fox")))
    person.click(search.filter_button)
    menus = [menu for menu in filters.findChildren(Menu) if menu.title()]
    person.random.choice(person.random.choice(menus).actions()).trigger()
    for menu in filters.findChildren(Menu):
        menu.close()
    person.settle()
    person.settle()  # the letters that were typed during the first search
    chosen = person.core.search.filters
    assert filters.isVisible() is (chosen != NO_FILTERS)
    results = person.window.sidebar.results
    for at in range(results.count()):
        row = results.item(at).data(Qt.ItemDataRole.UserRole)
        assert isinstance(row, FoundRow)
        place = person.core.library.listed.summary(row.conversation_id).placement
        assert place.archived or chosen.archive is not InArchive.ONLY
        assert not place.archived or chosen.archive is not InArchive.WITHOUT
        assert chosen.folder_id in (None, place.folder_id)
    QTest.keyClick(search.edit, Qt.Key.Key_Escape)
    person.settle()
    assert not filters.isVisible()
    assert person.window.sidebar.list.isVisible()
    return chosen != NO_FILTERS


@kind("go to a chat by letters")
def go_to(person: Person) -> bool:
    """Type letters of a title into Go To. If a chat is among the first results, open it."""
    titles = {one.title[:6].strip() for one in person.core.library.listed.all}
    typeable = sorted(title for title in titles if title.isascii() and title.isprintable())
    person.press(Qt.Key.Key_K, CTRL)
    popup = person.window.switching.popup
    assert popup.isVisible()
    QTest.keyClicks(popup.field, person.random.choice(("", *typeable)))
    for _ in range(person.random.randrange(3)):
        QTest.keyClick(popup.field, Qt.Key.Key_Down)
    item = popup.list.currentItem()
    before, found = person.current, item and item.data(Qt.ItemDataRole.UserRole)
    opens = isinstance(found, Found) and found.entry.kind is EntryKind.CHAT
    QTest.keyClick(popup.field, Qt.Key.Key_Return if opens else Qt.Key.Key_Escape)
    assert not popup.isVisible()
    if isinstance(found, Found) and opens:
        person.wait_until(lambda: person.current == found.entry.key)
    person.settle()
    return person.current != before


@kind("open a chat with the keys")
def open_chat_with_keys(person: Person) -> bool:
    if len(person.listed) < 2 or not person.window.sidebar.isVisible():
        return False
    before = person.current
    person.window.sidebar.list.setFocus()
    person.press(person.random.choice((Qt.Key.Key_Up, Qt.Key.Key_Down)))
    person.settle()
    return person.current != before


@kind("open a recent chat")
def open_recent(person: Person) -> bool:
    buttons = [one for one in person.pane.empty.recent.findChildren(QPushButton) if one.isVisible()]
    if not buttons:
        return False
    before = person.current
    person.click(person.random.choice(buttons))
    person.wait_until(lambda: person.current != before)
    return True


@kind("rename in the title")
def rename_in_title(person: Person) -> bool:
    if person.current not in person.listed:
        return False
    title = f"Title {person.random.randrange(1000)}"
    toolbar = person.window.toolbar
    person.click(toolbar.title_button)
    QTest.keyClicks(toolbar.title_field, title)
    person.press(Qt.Key.Key_Return)
    assert person.conversation.title == title
    return True


def _is_at_current(person: Person) -> bool:
    """Return True if the chat on show is the selected row, and not archived or in a closed folder."""
    chats = person.window.sidebar.list
    row = chats.row
    is_selected = person.current in chats.selected
    return (
        isinstance(row, ConversationRow) and row.conversation_id == person.current and is_selected
    )


@kind("rename in the list")
def rename_in_list(person: Person) -> bool:
    chats = person.window.sidebar.list
    if person.current not in person.listed or not chats.isVisible():
        return False
    if not _is_at_current(person):
        return False
    title = f"Name {person.random.randrange(1000)}"
    chats.setFocus()
    person.run(CommandId.RENAME)
    editor = QApplication.focusWidget()
    assert isinstance(editor, QLineEdit)
    QTest.keyClicks(editor, title)
    assert editor.text() == title, f"{editor.text()!r}, {editor}"
    QTest.keyClick(editor, Qt.Key.Key_Return)
    person.settle()
    assert person.conversation.title == title, person.conversation.title
    return True


@kind("delete a chat")
def delete_chat(person: Person) -> bool:
    chats = person.window.sidebar.list
    if len(person.listed) < 4 or person.current not in person.listed or not chats.isVisible():
        return False
    if not _is_at_current(person):
        return False
    gone = person.current
    chats.setFocus()
    model = chats.model()
    assert isinstance(model, ConversationsModel)
    row, state = model.row_at(chats.currentIndex()), chats.state()
    person.press(Qt.Key.Key_Delete)
    assert gone not in person.listed, f"{row} was current in the list, which was {state}"
    return True


@kind("keep a chat ready")
def keep_ready(person: Person) -> bool:
    before = person.conversation.keep_ready
    if not person.try_to_run(CommandId.KEEP_READY):
        return False
    assert person.conversation.keep_ready is not before
    return True


@kind("show the next or previous chat")
def step_chat(person: Person) -> bool:
    before = person.current
    command = person.random.choice((CommandId.NEXT_CHAT, CommandId.PREVIOUS_CHAT))
    chats = [one.conversation_id for one in person.core.organiser.arrangement.in_order]
    if not {*chats} - {before} or not person.try_to_run(command):
        return False
    person.wait_until(lambda: person.current != before)
    return True


@kind("go back or forward")
def step_in_history(person: Person) -> bool:
    before = person.current
    if not person.try_to_run(person.random.choice((CommandId.BACK, CommandId.FORWARD))):
        return False
    person.wait_until(lambda: person.current != before)
    return True


@kind("type in the list")
def type_in_list(person: Person) -> bool:
    chats = person.window.sidebar.list
    if person.current not in person.listed or not chats.isVisible():
        return False
    before, text = person.current, person.edit.toPlainText()
    chats.setFocus()
    person.press(Qt.Key.Key_T)
    assert person.current == before
    assert person.edit.hasFocus()
    assert sorted(person.edit.toPlainText()) == sorted(f"{text}t")
    return True


def _open_deleted(person: Person) -> DeletedSheet | None:
    button = person.window.sidebar.foot.deleted
    if not button.isVisible():
        return None
    person.click(button)
    sheet = person.window.findChildren(DeletedSheet)[-1]
    sheet.list.setCurrentRow(person.random.randrange(sheet.list.count()))
    return sheet


def _is_there(person: Person, item: DeletedConversation | Folder) -> bool:
    """Return True if an item of the sheet is no longer deleted."""
    if isinstance(item, Folder):
        return person.core.folders.get(item.folder_id) is not None
    return item.summary.conversation_id in person.listed


def _close_deleted(person: Person) -> None:
    """Close the sheet, unless it has closed because it became empty."""
    for sheet in person.window.findChildren(DeletedSheet):
        sheet.accept()
    person.settle()


@kind("restore a deleted chat or folder")
def restore_item(person: Person) -> bool:
    sheet = _open_deleted(person)
    if sheet is None:
        return False
    (row,) = sheet.selected
    person.click(sheet.restore_button)
    if not isinstance(row.item, Folder):
        restored = row.item.summary.conversation_id
        person.wait_until(lambda: person.current == restored)
    assert _is_there(person, row.item)
    _close_deleted(person)
    return True


@kind("delete a chat or folder for good")
def remove_item(person: Person) -> bool:
    sheet = _open_deleted(person)
    if sheet is None:
        return False
    (row,) = sheet.selected
    person.click(sheet.delete_button)
    press(sheet_in(sheet), person.random.choice(("Cancel", "Delete")))
    person.settle()
    is_removed = row.item not in person.core.recently_deleted.items
    if is_removed and not isinstance(row.item, Folder):
        removed = row.item.summary.conversation_id
        assert removed not in person.core.desk
        gone = [one for one, place in person.entrusted.items() if place == removed]
        for marker in gone:
            del person.entrusted[marker]
    _close_deleted(person)
    return is_removed
