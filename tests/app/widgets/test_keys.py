"""Tests that press every shortcut in the real window, also while a text field has the focus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from PySide6.QtGui import QGuiApplication, QInputMethodEvent, QKeySequence
from PySide6.QtPrintSupport import QPrintDialog
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QFileDialog,
    QLineEdit,
    QPlainTextEdit,
    QWidget,
)

from app.viewmodels.transcript import ItemStatus
from app.widgets.branch_map.window import BranchMapWindow
from app.widgets.commands import COMMANDS, CommandId, key_sequences
from app.widgets.memory_window import MemoryWindow
from app.widgets.message_sheet import MessageSheet
from app.widgets.models_window import ModelsWindow
from app.widgets.settings_window import SettingsWindow
from app.widgets.transcript.editor.editor import MessageEditor
from app.widgets.why_window import WhyWindow
from tests.app.conftest import MakeStage
from tests.fakes.stage import CTRL, Key, Stage

# Ignore two kinds of messages: the offscreen platform logs "does not support" for every popup, and
# QTest logs "keyToAscii" for keys without text.
pytestmark = pytest.mark.qt_log_ignore(
    "does not support (raise|grabbing)", "keyToAscii", extend=True
)

KEYED = [command for command in COMMANDS if command.keys is not None]
Field = QLineEdit | QPlainTextEdit


@dataclass(frozen=True, slots=True)
class KeyCase:
    """A test of a shortcut. `set_up` prepares the window; `effect` checks it afterwards."""

    set_up: Callable[[Stage], object]
    effect: Callable[[Stage], bool]


def press(stage: Stage, keys: QKeySequence) -> None:
    """Send the keys to the focused widget."""
    QTest.keySequence(QApplication.focusWidget() or stage.window, keys)
    stage.settle()


def clipboard() -> str:
    return QGuiApplication.clipboard().text()


def nothing(_stage: Stage) -> None:
    """Do nothing: a set-up for shortcuts that are pressed right after the window opens."""


def typed(stage: Stage) -> None:
    stage.type("words")


def marked(stage: Stage) -> None:
    typed(stage)
    stage.edit.selectAll()


def undone(stage: Stage) -> None:
    stage.type("words")
    stage.edit.undo()


def copied(_stage: Stage) -> None:
    QGuiApplication.clipboard().setText("pasted")


def talked(stage: Stage) -> None:
    if not stage.items:
        stage.chat("A fox?", "No fox, no FOX.")


def selected(stage: Stage) -> None:
    talked(stage)
    stage.pane.view.setFocus()
    stage.pane.view.selection.select_all()


def looked_for(stage: Stage) -> None:
    talked(stage)
    stage.run(CommandId.FIND)
    QTest.keyClicks(stage.pane.find_bar.field, "fox")


def answering(stage: Stage) -> None:
    if not stage.core.turns.live:
        stage.send("Hello")
        stage.engine.write("Half")
        stage.settle()


def stopped(stage: Stage) -> None:
    answering(stage)
    stage.run(CommandId.STOP)


def answered_twice(stage: Stage) -> None:
    stage.chat("Hello", "one")
    stage.run(CommandId.REGENERATE)
    stage.answer("two")


def first_version(stage: Stage) -> None:
    answered_twice(stage)
    stage.run(CommandId.PREVIOUS_VERSION)


def three_chats(stage: Stage) -> None:
    """Make three chats. The newest one, "Three", is on show and is the first in the list."""
    if stage.rows:
        stage.click_row("Three")
        return
    for number in ("One", "Two", "Three"):
        stage.rig.origin.time_s += 1.0
        stage.run(CommandId.NEW_CHAT)
        stage.chat(number, "Yes.")


def visited(stage: Stage) -> None:
    three_chats(stage)
    stage.click_row("One")
    stage.edit.setFocus()


def back_from_one(stage: Stage) -> None:
    visited(stage)
    stage.run(CommandId.BACK)


def zoomed(stage: Stage) -> None:
    stage.run(CommandId.ZOOM_IN)


def in_list(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.click_row("Hello")


def mapped(stage: Stage) -> bool:
    window = stage.window.findChild(BranchMapWindow)
    return window is not None and window.isVisible()


def num_answering(stage: Stage) -> int:
    """Return the number of running answers of the chat on show. Stop them."""
    count = len(stage.core.turns.replies_in(stage.current))
    stage.core.chat.stop(stage.current)
    stage.settle()
    stage.pane.reading.close_answers()
    return count


def zoom(stage: Stage) -> int:
    return stage.rig.core.preferences.value.text_zoom


def found(stage: Stage) -> str:
    return stage.pane.find_bar.count.text()


def asks(stage: Stage) -> bool:
    """Return True if a sheet asks whether to quit. Close the sheet."""
    boxes = stage.window.findChildren(MessageSheet)
    for box in boxes:
        box.reject()
    return bool(boxes)


def shows_settings(stage: Stage) -> bool:
    window = stage.window.findChild(SettingsWindow)
    return window is not None and window.isVisible()


def shows_sheet(stage: Stage) -> bool:
    sheet = stage.window.findChild(QDialog, "shortcuts")
    return sheet is not None and sheet.isVisible()


CASES = {
    CommandId.NEW_CHAT: KeyCase(talked, lambda stage: stage.pane.empty.heading.isVisible()),
    CommandId.NEW_FOLDER: KeyCase(
        nothing, lambda stage: stage.window.findChild(QDialog, "folderSheet") is not None
    ),
    CommandId.PIN: KeyCase(talked, lambda stage: stage.rows[:1] == ["PINNED"]),
    CommandId.ARCHIVE: KeyCase(talked, lambda stage: stage.rows == []),
    CommandId.DUPLICATE: KeyCase(talked, lambda stage: "A fox? (copy)" in stage.rows),
    CommandId.SWITCHER: KeyCase(nothing, lambda stage: stage.window.switching.popup.isVisible()),
    CommandId.PRINT: KeyCase(talked, lambda stage: bool(stage.window.findChildren(QPrintDialog))),
    CommandId.CLOSE: KeyCase(nothing, lambda stage: not stage.window.isVisible()),
    CommandId.SETTINGS: KeyCase(nothing, shows_settings),
    CommandId.QUIT: KeyCase(answering, asks),
    CommandId.UNDO: KeyCase(typed, lambda stage: stage.composer.text == ""),
    CommandId.REDO: KeyCase(undone, lambda stage: stage.composer.text == "words"),
    CommandId.CUT: KeyCase(
        marked, lambda stage: (stage.composer.text, clipboard()) == ("", "words")
    ),
    CommandId.COPY: KeyCase(selected, lambda _stage: "A fox?" in clipboard()),
    CommandId.PASTE: KeyCase(copied, lambda stage: stage.composer.text == "pasted"),
    CommandId.SELECT_ALL: KeyCase(typed, lambda stage: stage.edit.textCursor().hasSelection()),
    CommandId.FIND: KeyCase(talked, lambda stage: stage.pane.find_bar.field.hasFocus()),
    CommandId.FIND_NEXT: KeyCase(looked_for, lambda stage: found(stage) == "2 of 3"),
    CommandId.FIND_PREVIOUS: KeyCase(looked_for, lambda stage: found(stage) == "3 of 3"),
    CommandId.ATTACH: KeyCase(nothing, lambda stage: bool(stage.window.findChildren(QFileDialog))),
    CommandId.EXPORT: KeyCase(talked, lambda stage: bool(stage.window.findChildren(QFileDialog))),
    CommandId.SEARCH: KeyCase(nothing, lambda stage: stage.window.sidebar.search.edit.hasFocus()),
    CommandId.SIDEBAR: KeyCase(nothing, lambda stage: not stage.window.sidebar.isVisible()),
    CommandId.INSPECTOR: KeyCase(nothing, lambda stage: stage.window.inspector.isVisible()),
    CommandId.BRANCH_MAP: KeyCase(talked, mapped),
    CommandId.ZOOM_IN: KeyCase(nothing, lambda stage: zoom(stage) > 100),
    CommandId.ZOOM_OUT: KeyCase(nothing, lambda stage: zoom(stage) < 100),
    CommandId.ZOOM_RESET: KeyCase(zoomed, lambda stage: zoom(stage) == 100),
    CommandId.FULL_SCREEN: KeyCase(nothing, lambda stage: stage.window.isFullScreen()),
    CommandId.STOP: KeyCase(answering, lambda stage: stage.items[-1].status is ItemStatus.STOPPED),
    CommandId.REGENERATE: KeyCase(talked, lambda stage: stage.items[-1].version.count == 2),
    **{
        id_: KeyCase(talked, lambda stage, count=count: num_answering(stage) == count)
        for count, id_ in (
            (2, CommandId.ANSWERS_2),
            (3, CommandId.ANSWERS_3),
            (4, CommandId.ANSWERS_4),
        )
    },
    CommandId.SIDE_BY_SIDE: KeyCase(answered_twice, lambda stage: stage.pane.reading.is_open),
    CommandId.CONTINUE: KeyCase(
        stopped, lambda stage: stage.items[-1].status is ItemStatus.STREAMING
    ),
    CommandId.PREVIEW_EDITS: KeyCase(
        nothing, lambda stage: stage.core.preferences.value.preview_edits
    ),
    CommandId.COPY_LAST: KeyCase(talked, lambda _stage: clipboard() == "No fox, no FOX."),
    CommandId.WHY_READ: KeyCase(
        talked, lambda stage: stage.window.findChild(WhyWindow) is not None
    ),
    CommandId.PREVIOUS_VERSION: KeyCase(answered_twice, lambda stage: stage.texts[-1] == "one"),
    CommandId.NEXT_VERSION: KeyCase(first_version, lambda stage: stage.texts[-1] == "two"),
    CommandId.RENAME: KeyCase(talked, lambda stage: stage.window.toolbar.title_field.hasFocus()),
    CommandId.DELETE: KeyCase(in_list, lambda stage: stage.rows == []),
    CommandId.CHOOSE_MODEL: KeyCase(nothing, lambda stage: stage.window.picker.isVisible()),
    CommandId.GET_MODELS: KeyCase(
        nothing, lambda stage: stage.window.findChild(ModelsWindow) is not None
    ),
    CommandId.MEMORY_MAP: KeyCase(
        nothing, lambda stage: stage.window.findChild(MemoryWindow) is not None
    ),
    CommandId.MINIMISE: KeyCase(nothing, lambda stage: stage.window.isMinimized()),
    CommandId.NEXT_CHAT: KeyCase(three_chats, lambda stage: stage.texts[:1] == ["Two"]),
    CommandId.PREVIOUS_CHAT: KeyCase(three_chats, lambda stage: stage.texts[:1] == ["One"]),
    CommandId.BACK: KeyCase(visited, lambda stage: stage.texts[:1] == ["Three"]),
    CommandId.FORWARD: KeyCase(back_from_one, lambda stage: stage.texts[:1] == ["One"]),
    CommandId.SHORTCUTS: KeyCase(nothing, shows_sheet),
}


# Commands whose effects one window can have in this order, after `restored` in between. A window for
# each of them would take most of the time of these tests.
TOGETHER = (
    (
        # Before the large windows, which each change of the zoom would style too.
        *(CommandId.ZOOM_IN, CommandId.ZOOM_OUT, CommandId.ZOOM_RESET, CommandId.FULL_SCREEN),
        *(CommandId.NEW_FOLDER, CommandId.SWITCHER, CommandId.ATTACH, CommandId.SEARCH),
        *(CommandId.SIDEBAR, CommandId.INSPECTOR, CommandId.CHOOSE_MODEL, CommandId.MINIMISE),
        *(CommandId.UNDO, CommandId.REDO, CommandId.CUT, CommandId.PASTE, CommandId.SELECT_ALL),
        *(CommandId.SHORTCUTS, CommandId.GET_MODELS, CommandId.SETTINGS, CommandId.CLOSE),
        CommandId.MEMORY_MAP,
        CommandId.PREVIEW_EDITS,
    ),
    (
        *(
            CommandId.COPY,
            CommandId.COPY_LAST,
            CommandId.BRANCH_MAP,
            CommandId.FIND,
            CommandId.FIND_NEXT,
        ),
        *(CommandId.FIND_PREVIOUS, CommandId.PRINT, CommandId.EXPORT, CommandId.RENAME),
        *(CommandId.PIN, CommandId.DUPLICATE, CommandId.NEW_CHAT, CommandId.REGENERATE),
        CommandId.WHY_READ,
    ),
    (CommandId.NEXT_CHAT, CommandId.PREVIOUS_CHAT, CommandId.BACK, CommandId.FORWARD),
    (CommandId.QUIT, CommandId.STOP, CommandId.CONTINUE),
    (CommandId.ANSWERS_2, CommandId.ANSWERS_3, CommandId.ANSWERS_4),
    (CommandId.PREVIOUS_VERSION, CommandId.NEXT_VERSION, CommandId.SIDE_BY_SIDE),
)
GROUPS = (*TOGETHER, *((one,) for one in CASES if all(one not in group for group in TOGETHER)))
BY_ID = {command.id: command for command in KEYED}


def restored(stage: Stage) -> None:
    """Undo the effect of a shortcut on the windows, the field of the message and the settings."""
    for window in QApplication.topLevelWidgets():
        if window is not stage.window and window.isVisible():
            window.close()
    stage.pane.find_bar.end()
    stage.core.preferences.change(sidebar_visible=True, inspector_visible=False, text_zoom=100)
    stage.window.showNormal()
    stage.window.activateWindow()
    stage.edit.clear()
    stage.edit.setFocus()
    stage.settle()


@pytest.mark.slow
@pytest.mark.parametrize(
    "others", [False, pytest.param(True, marks=pytest.mark.soak)], ids=["first", "others"]
)
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: f"{group[0]}-{len(group)}")
def test_shortcuts_have_the_effects_of_their_commands(
    make_stage: MakeStage, group: tuple[CommandId, ...], others: bool
) -> None:
    stage: Stage | None = None
    for command_id in group:
        sequences = key_sequences(BY_ID[command_id])  # none, if the platform has no keys for it
        for keys in sequences[1:] if others else sequences[:1]:
            if stage is None:
                stage = make_stage()
            check_case(stage, CASES[command_id], f"{command_id}: {keys.toString()}", keys)
            restored(stage)


def check_case(stage: Stage, case: KeyCase, name: str, keys: QKeySequence) -> None:
    QGuiApplication.clipboard().clear()
    case.set_up(stage)
    assert not case.effect(stage), f"the effect exists before {name} is pressed"
    press(stage, keys)
    assert case.effect(stage), name


def test_every_command_with_a_shortcut_has_a_case() -> None:
    assert set(CASES) == {command.id for command in KEYED}


def title(stage: Stage) -> Field:
    stage.run(CommandId.RENAME)
    return stage.window.toolbar.title_field


def row(stage: Stage) -> Field:
    stage.click_row("Keep me")
    stage.list.edit_current()
    return typed_into(stage.list)


def find_field(stage: Stage) -> Field:
    stage.run(CommandId.FIND)
    return stage.pane.find_bar.field


def message(stage: Stage) -> Field:
    stage.run(CommandId.EDIT_LAST)
    stage.wait_until(lambda: stage.pane.view.findChild(MessageEditor) is not None)
    editor = stage.pane.view.findChild(MessageEditor)
    assert isinstance(editor, MessageEditor)
    return typed_into(editor)


def prompt(stage: Stage) -> Field:
    stage.run(CommandId.INSPECTOR)
    stage.window.inspector.prompt.setFocus()
    return stage.window.inspector.prompt


def seed(stage: Stage) -> Field:
    stage.run(CommandId.INSPECTOR)
    stage.window.inspector.seed.setFocus()
    return stage.window.inspector.seed


def temperature(stage: Stage) -> Field:
    stage.run(CommandId.INSPECTOR)
    stage.window.inspector.number.setFocus()
    return stage.window.inspector.number


def top_k(stage: Stage) -> Field:
    stage.run(CommandId.INSPECTOR)
    field = stage.window.inspector.sampling.fields["top_k"]
    field.setFocus()
    return field


def typed_into(parent: QWidget) -> Field:
    kinds = (QLineEdit, QPlainTextEdit)
    fields = [one for one in parent.findChildren(QWidget) if isinstance(one, kinds)]
    (field,) = [one for one in fields if not one.isReadOnly()]
    return field


# All text fields except the composer, which tests/app/e2e/test_conversations.py tests.
FIELDS = (title, row, find_field, message, prompt, seed, temperature, top_k)
OpenField = Callable[[Stage], Field]


def text_of(field: Field) -> str:
    return field.text() if isinstance(field, QLineEdit) else field.toPlainText()


def can_undo(field: Field) -> bool:
    if isinstance(field, QLineEdit):
        return field.isUndoAvailable()
    return field.document().isUndoAvailable()


def opened(stage: Stage, open_field: OpenField) -> Field:
    """Delete a chat, so that Undo could restore it. Focus a field of the chat that is left."""
    stage.chat("Keep me", "Yes")
    stage.run(CommandId.NEW_CHAT)
    stage.chat("Drop me", "No")
    stage.run(CommandId.DELETE)
    field = open_field(stage)
    assert field.hasFocus()
    return field


def closed(stage: Stage) -> None:
    """End the edit of a field, and hide the inspector."""
    QTest.keyClick(QApplication.focusWidget() or stage.window, Key.Key_Escape)
    stage.core.preferences.change(inspector_visible=False)
    stage.edit.setFocus()
    stage.settle()


def compose(field: QWidget, preedit: str, commit: str = "") -> None:
    event = QInputMethodEvent(preedit, [])
    event.setCommitString(commit)
    QApplication.sendEvent(field, event)


@pytest.mark.slow
def test_undo_key_undoes_typing_before_it_restores_a_chat(stage: Stage) -> None:
    stage.chat("Keep me", "Yes")
    stage.run(CommandId.NEW_CHAT)
    stage.chat("Drop me", "No")
    for open_field in FIELDS:
        stage.click_row("Drop me")
        stage.edit.setFocus()
        stage.run(CommandId.DELETE)
        field = open_field(stage)
        assert field.hasFocus(), open_field
        before = text_of(field)
        field.selectAll()
        QTest.keyClicks(field, "1")
        while text_of(field) != before and can_undo(field):
            QTest.keyClick(field, Key.Key_Z, CTRL)
        stage.settle()
        assert text_of(field) == before, open_field
        assert "Drop me" not in stage.rows, open_field
        QTest.keyClick(field, Key.Key_Z, CTRL)
        stage.settle()
        assert "Drop me" in stage.rows, f"{open_field}: the chat was not restored"
        closed(stage)


@pytest.mark.slow
def test_delete_keys_in_a_text_field_delete_no_chat(stage: Stage) -> None:
    stage.chat("Keep me", "Yes")
    for open_field in FIELDS:
        field = open_field(stage)
        assert field.hasFocus(), open_field
        field.selectAll()
        QTest.keyClicks(field, "1")
        for key in (Key.Key_Backspace, Key.Key_Delete, Key.Key_D):
            QTest.keyClick(field, key, CTRL)
        stage.settle()
        assert text_of(field) == "", open_field
        QTest.keyClick(field, Key.Key_Delete)
        stage.settle()
        assert "Keep me" in stage.rows, open_field
        closed(stage)


def test_delete_key_deletes_a_chat_only_if_the_list_has_focus(stage: Stage) -> None:
    stage.chat("Keep me", "Yes")
    for place in (stage.pane.view, stage.composer.button, stage.window.toolbar.title_button):
        place.setFocus()
        press(stage, QKeySequence(Key.Key_Delete))
        assert stage.rows == ["TODAY", "Keep me"]


@pytest.mark.parametrize("open_field", [title, row, find_field], ids=lambda field: field.__name__)
def test_return_and_escape_while_an_input_method_composes_keep_focus(
    stage: Stage, open_field: OpenField
) -> None:
    field = opened(stage, open_field)
    compose(field, "ni")
    QTest.keyClick(field, Key.Key_Return)
    QTest.keyClick(field, Key.Key_Escape)
    stage.settle()
    assert field.hasFocus()
    compose(field, "", "你")
    assert text_of(field) == "你"
    QTest.keyClick(field, Key.Key_Return)
    stage.settle()
    if open_field is not find_field:
        assert "你" in stage.rows


def test_escape_closes_find_bar_then_editor_then_stops_the_answer(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.run(CommandId.EDIT_LAST)
    stage.edit.setFocus()
    answering(stage)
    stage.run(CommandId.FIND)
    stage.edit.setFocus()
    stage.type("next")
    compose(stage.edit, "ni")
    QTest.keyClick(stage.edit, Key.Key_Escape)
    assert stage.pane.find_bar.isVisible(), "Esc during composition closed the find bar"
    compose(stage.edit, "")
    QTest.keyClick(stage.edit, Key.Key_Escape)
    assert not stage.pane.find_bar.isVisible()
    assert any(item.editing for item in stage.items)
    QTest.keyClick(stage.edit, Key.Key_Escape)
    stage.settle()
    assert not any(item.editing for item in stage.items)
    assert stage.engine.running is not None
    QTest.keyClick(stage.edit, Key.Key_Escape)
    stage.settle()
    assert stage.engine.running is None
    assert stage.composer.text == "next"


def test_escape_in_a_popover_closes_it_and_does_not_stop_the_answer(stage: Stage) -> None:
    answering(stage)
    stage.run(CommandId.CHOOSE_MODEL)
    QTest.keyClick(stage.window.picker, Key.Key_Escape)
    assert not stage.window.picker.isVisible()
    assert stage.engine.running is not None


def test_return_in_a_single_line_field_does_not_send_the_draft(stage: Stage) -> None:
    stage.chat("Keep me", "Yes")
    stage.type("draft")
    for open_field in (title, find_field, seed):
        QTest.keyClick(open_field(stage), Key.Key_Return)
        stage.settle()
    assert len(stage.engine.submitted) == 1
    assert stage.composer.text == "draft"
