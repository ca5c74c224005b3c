from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QMenu

from app.controllers.desk import KEPT
from app.conversation.tree import new_conversation, set_title
from app.theme.tokens import Size, Space
from app.widgets.commands import CommandId
from app.widgets.conversation_delegate import ConversationDelegate
from app.words.commands import BY_ACTIVITY, BY_CREATION, BY_TITLE
from engine.types import ConversationId
from tests.fakes.stage import Key, Stage

# The offscreen platform logs these messages for every popup.
pytestmark = pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True)


def open_menu(stage: Stage, row: int) -> QMenu:
    """Click the menu button at the right end of a row and return the menu."""
    rect = stage.list.visualRect(stage.list.model().index(row, 0))
    QTest.mouseClick(
        stage.list.viewport(),
        Qt.MouseButton.LeftButton,
        pos=QPoint(rect.right() - 24, rect.center().y()),
    )
    menu = stage.list.findChild(QMenu)
    assert isinstance(menu, QMenu)
    return menu


def test_menu_button_of_a_row_opens_the_menu_without_selecting(stage: Stage) -> None:
    stage.chat("One", "1")
    stage.run(CommandId.NEW_CHAT)
    menu = open_menu(stage, 1)
    assert [action.text() for action in menu.actions()] == [
        "Rename…",
        "Pin",
        "Archive",
        "Move to Folder",
        "Duplicate",
        "Keep in Memory",
        "Export Chat…",
        "",
        "Delete Chat",
    ]
    assert stage.pane.empty.heading.isVisible(), "another chat was opened"
    menu.actions()[-1].trigger()
    menu.close()
    stage.settle()
    assert stage.rows == []


def test_menu_beside_the_rows_sorts_the_list(stage: Stage) -> None:
    for title in ("alpha", "Beta"):
        stage.run(CommandId.NEW_CHAT)
        stage.chat(title, "Yes")
    viewport = stage.list.viewport()
    at = viewport.rect().bottomLeft()
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, viewport.mapToGlobal(at))
    QApplication.sendEvent(viewport, event)
    menu = stage.list.findChild(QMenu)
    assert isinstance(menu, QMenu)
    orders = menu.actions()[-1].menu()
    assert isinstance(orders, QMenu)
    assert [action.text() for action in orders.actions()] == [BY_ACTIVITY, BY_CREATION, BY_TITLE]
    assert [action.isChecked() for action in orders.actions()] == [True, False, False]
    orders.actions()[-1].trigger()
    menu.close()
    stage.settle()
    assert stage.rows == ["CHATS", "alpha", "Beta"]


def test_new_chat_right_after_typing_keeps_the_draft(stage: Stage) -> None:
    stage.type("Half a thought")
    stage.run(CommandId.NEW_CHAT)
    assert stage.edit.toPlainText() == ""
    assert stage.rows == ["TODAY", "Half a thought"]


def test_rename_in_the_row_menu_edits_the_title(stage: Stage) -> None:
    stage.chat("One", "1")
    menu = open_menu(stage, 1)
    menu.actions()[0].trigger()
    menu.close()
    editor = stage.list.findChild(QLineEdit)
    assert isinstance(editor, QLineEdit)
    assert editor.text() == "One"
    QTest.keyClicks(editor, "Uno")
    QTest.keyClick(editor, Key.Key_Return)
    stage.settle()
    assert stage.rows == ["TODAY", "Uno"]


def test_title_being_edited_stays_when_the_list_changes(stage: Stage) -> None:
    stage.chat("One", "1")
    stage.run(CommandId.NEW_CHAT)
    stage.rig.origin.time_s += 1
    stage.send("Two")
    stage.click_row("One")
    stage.list.edit_current()
    editor = stage.list.findChild(QLineEdit)
    assert isinstance(editor, QLineEdit)
    stage.run(CommandId.KEEP_READY)  # changes the row while its title is being edited
    QTest.keyClicks(editor, "Un")
    stage.answer("2")
    stage.rig.origin.time_s += 1
    stage.rig.chat.send(stage.current, "goes to the top")
    stage.settle()
    assert stage.rows == ["TODAY", "One", "Two"]
    assert editor.hasFocus()
    QTest.keyClicks(editor, "o")
    QTest.keyClick(editor, Key.Key_Return)
    stage.settle()
    assert stage.rows == ["TODAY", "Uno", "Two"]


def test_keep_ready_in_the_row_menu_marks_the_row(stage: Stage) -> None:
    stage.chat("One", "1")
    stage.run(CommandId.NEW_CHAT)
    for keep in (True, False):
        menu = open_menu(stage, 1)
        assert menu.actions()[5].isChecked() is not keep
        menu.actions()[5].trigger()
        menu.close()
        stage.settle()
        assert stage.row("One").keep_ready is keep
        assert ("“Keep in Memory” is on" in stage.row("One").spoken) is keep


def test_arrow_keys_in_the_list_open_the_chats(stage: Stage) -> None:
    for title in ("One", "Two", "Three"):
        stage.chat(title, "ok")
        stage.rig.origin.time_s += 1
        stage.run(CommandId.NEW_CHAT)
    stage.click_row("Three")
    QTest.keyClick(stage.list, Key.Key_Down)
    stage.settle()
    assert stage.texts[0] == "Two"
    QTest.keyClick(stage.list, Key.Key_Down)
    QTest.keyClick(stage.list, Key.Key_Down)
    stage.settle()
    assert stage.texts[0] == "One"
    assert stage.list.hasFocus()


def test_hovered_chat_is_loaded_before_it_is_clicked(stage: Stage) -> None:
    for number in range(KEPT + 2):
        stage.chat(f"Chat {number}", "ok")
        stage.rig.origin.time_s += 1
        stage.run(CommandId.NEW_CHAT)
    oldest = stage.rig.library.listed.unarchived[-1].conversation_id
    assert oldest not in stage.rig.desk
    rect = stage.list.visualRect(stage.list.model().index(KEPT + 2, 0))
    for point in (rect.center(), rect.center() + QPoint(1, 0)):
        QTest.mouseMove(stage.list.viewport(), point)
    stage.wait_until(lambda: oldest in stage.rig.desk)
    assert stage.pane.empty.heading.isVisible(), "another chat was opened"


def test_row_paints_in_every_state_without_error(stage: Stage) -> None:
    """pytest-qt reports an exception in the painting code as an exception of the event loop."""
    stage.chat("One " * 40, "1")
    stage.run(CommandId.KEEP_READY)
    stage.send("Two")
    stage.run(CommandId.NEW_CHAT)
    stage.answer("2")
    stage.list.setFocus()
    QTest.mouseMove(
        stage.list.viewport(), stage.list.visualRect(stage.list.model().index(1, 0)).center()
    )
    picture = stage.list.grab()
    assert not picture.isNull()


def colours(stage: Stage, row: int) -> list[str]:
    """Return the pixel colours of a vertical line through the centre of a row."""
    picture = stage.list.viewport().grab().toImage()
    rect = stage.list.visualRect(stage.list.model().index(row, 0))
    x = round(rect.center().x() * picture.devicePixelRatio())
    tops = (round(y * picture.devicePixelRatio()) for y in range(rect.top(), rect.bottom() + 1))
    return [picture.pixelColor(x, top).name().upper() for top in tops]


def test_row_height_equals_the_design_token(stage: Stage) -> None:
    stage.chat("One", "1")
    assert colours(stage, 1).count(stage.theme.colors.selected) == Size.ROW


def test_more_contrast_outlines_the_selected_row(stage: Stage) -> None:
    stage.chat("One", "1")
    stage.run(CommandId.CONTRAST)
    found = colours(stage, 1)
    assert found.count(stage.theme.colors.text) == 2 * Space.HAIR
    assert found.count(stage.theme.colors.selected) == Size.ROW - 2 * Space.HAIR


def test_row_of_a_chat_whose_request_is_queued_says_that_it_waits(stage: Stage) -> None:
    stage.chat("One", "1")
    stage.engine.hold_start = True
    stage.send("Two")
    assert stage.row("One").activity == "Waiting"
    assert stage.row("One").spoken == "One, waiting"
    stage.engine.begin_first()
    stage.settle()
    assert stage.row("One").activity == "Reading 0%"


def test_activity_of_a_row_without_a_rate_is_not_coloured(stage: Stage) -> None:
    stage.chat("One", "1")
    stage.run(CommandId.NEW_CHAT)
    stage.send("Two")
    stage.click_row("One")
    assert stage.row("Two").activity == "Reading 0%"
    assert stage.row("Two").spoken == "Two, reading 0%"
    assert "Reading 0%" in stage.window.sidebar.footer.accessibleName()
    waiting = inks(stage, "Two")
    colors = stage.theme.colors
    stage.click_row("Two")
    selected = inks(stage, "Two")
    assert (colors.tertiary in waiting, colors.tertiary in selected) == (True, False)
    assert colors.secondary in selected
    stage.click_row("One")
    stage.engine.write("a ")
    stage.settle()
    stage.rig.origin.tick_s += 0.5
    stage.engine.write("b ")
    stage.settle()
    assert stage.row("Two").activity.endswith("tok/s")
    assert stage.row("Two").spoken == "Two, answering"
    assert "Answering" in stage.window.sidebar.footer.accessibleName()
    ink = colors.instant.ink
    assert (ink in waiting, ink in inks(stage, "Two")) == (False, True)


def inks(stage: Stage, title: str) -> set[str]:
    rect = stage.list.visualRect(stage.list.model().index(stage.rows.index(title), 0))
    picture = stage.list.viewport().grab(rect).toImage()
    points = product(range(picture.width()), range(picture.height()))
    return {picture.pixelColor(x, y).name().upper() for x, y in points}


def test_typing_in_the_list_goes_to_the_composer(stage: Stage) -> None:
    stage.chat("Zebra", "1")
    stage.run(CommandId.NEW_CHAT)
    stage.rig.origin.time_s += 1
    stage.chat("Other", "2")
    stage.click_row("Other")
    stage.list.setFocus()
    QTest.keyClicks(stage.list, "z")
    assert stage.edit.hasFocus()
    QTest.keyClicks(stage.edit, "oo")
    stage.settle()
    assert stage.composer.text == "zoo"
    assert stage.texts == ["Other", "2"], "the typed letter opened another chat"


def test_only_keys_draw_the_ring_of_a_row(stage: Stage) -> None:
    stage.chat("One", "1")
    delegate = stage.list.itemDelegate()
    assert isinstance(delegate, ConversationDelegate)
    stage.click_row("One")
    stage.list.setFocus(Qt.FocusReason.MouseFocusReason)
    assert not delegate.shows_focus
    QTest.keyClick(stage.list, Key.Key_Down)
    assert delegate.shows_focus
    stage.click_row("One")
    assert not delegate.shows_focus
    stage.edit.setFocus()
    stage.list.setFocus(Qt.FocusReason.TabFocusReason)
    assert delegate.shows_focus


def test_chat_on_show_below_the_first_batch_of_rows_is_scrolled_into_view(stage: Stage) -> None:
    stage.chat("One", "1")
    row = stage.row("One")
    rows = [replace(row, conversation_id=ConversationId(f"c{n}")) for n in range(1200)]
    stage.list.show_rows([*rows], rows[-1].conversation_id)
    stage.wait_until(lambda: stage.list.visualRect(stage.list.currentIndex()).isValid())
    shown = stage.list.visualRect(stage.list.currentIndex())
    assert stage.list.viewport().rect().contains(shown)


def test_chat_on_show_stays_visible_when_it_moves_to_the_top(stage: Stage) -> None:
    stage.window.resize(900, 480)
    for number in range(14):
        stage.rig.origin.time_s += 1
        name, now = f"Chat {number}", stage.rig.origin.time_s
        chat = new_conversation(ConversationId(name), now=now)
        stage.core.library.add_beside(set_title(chat, name), stage.current)
    stage.click_row("Chat 0")
    assert stage.list.verticalScrollBar().value() > 0
    stage.rig.origin.time_s += 1
    stage.send("More")
    assert stage.list.currentIndex().row() == 1, "it is the first chat, below the heading"
    assert stage.list.viewport().rect().contains(stage.list.visualRect(stage.list.currentIndex()))
    assert stage.list.selected == [stage.current]
    stage.list.scrollToBottom()
    bottom = stage.list.verticalScrollBar().value()
    stage.engine.write("Half")
    stage.settle()
    assert stage.list.verticalScrollBar().value() == bottom, "only a message moves the list"


def test_focus_of_a_list_without_the_shown_chat_is_visible_and_an_empty_list_is_skipped(
    stage: Stage,
) -> None:
    before = stage.window.sidebar.search.edit
    before.setFocus()
    QTest.keyClick(before, Key.Key_Tab)
    assert not stage.list.hasFocus(), "it is empty"
    stage.chat("One", "1")
    stage.run(CommandId.NEW_CHAT)
    stage.list.setFocus(Qt.FocusReason.TabFocusReason)
    assert stage.list.currentIndex().data() == "One"
    assert stage.pane.empty.heading.isVisible(), "the focus opens no chat"
    with_focus = stage.list.grab().toImage()
    stage.list.clearFocus()
    assert stage.list.grab().toImage() != with_focus
    stage.list.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(stage.list, Key.Key_Down)
    stage.settle()
    assert stage.texts == ["One", "1"]
