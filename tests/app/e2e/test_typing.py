"""Tests of the focus after clicks, of typing in the transcript, and of the sidebar's width."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.theme.tokens import Size
from app.widgets.button import Button
from app.widgets.commands import CommandId
from app.widgets.focus_ring import FocusRing
from app.widgets.settings_window import SettingsWindow
from tests.fakes.stage import Key, Stage

LEFT = Qt.MouseButton.LeftButton


def test_composer_has_focus_after_send_and_stop_by_mouse(stage: Stage) -> None:
    stage.type("Hello")
    QTest.mouseClick(stage.composer.button, LEFT)
    stage.settle()
    QTest.mouseClick(stage.composer.button, LEFT)
    stage.settle()
    assert stage.edit.hasFocus()


def test_composer_has_focus_after_space_key_on_the_stop_button(stage: Stage) -> None:
    stage.send("Hello")
    stage.composer.button.setFocus()
    QTest.keyClick(stage.composer.button, Key.Key_Space)
    stage.settle()
    assert stage.engine.running is None
    assert stage.edit.hasFocus()


@pytest.mark.parametrize("key", [Key.Key_Return, Key.Key_Escape])
@pytest.mark.parametrize("command", [CommandId.RENAME, CommandId.EDIT_LAST])
def test_composer_has_focus_after_a_rename_and_an_edit(
    stage: Stage, command: CommandId, key: Qt.Key
) -> None:
    stage.chat("Hello", "Yes.")
    stage.run(command)
    field = QApplication.focusWidget()
    assert field is not None
    assert field is not stage.edit
    QTest.keyClicks(field, "x")
    QTest.keyClick(field, key)
    stage.settle()
    assert stage.edit.hasFocus()
    ring = stage.pane.view.findChild(FocusRing)
    assert isinstance(ring, FocusRing)
    assert not ring.isVisible()


def test_click_hides_the_ring_of_the_transcript(stage: Stage) -> None:
    stage.chat("Hello", "Yes.")
    view = stage.pane.view
    ring = view.findChild(FocusRing)
    assert isinstance(ring, FocusRing)
    view.setFocus(Qt.FocusReason.TabFocusReason)
    assert ring.isVisible()
    QTest.mouseClick(view.viewport(), LEFT)
    assert view.hasFocus()
    assert not ring.isVisible()


@pytest.mark.qt_log_ignore("does not support raise", extend=True)
def test_click_on_a_button_leaves_the_focus_in_the_composer(stage: Stage) -> None:
    stage.chat("Hello", "Yes.")
    stage.run(CommandId.SETTINGS)
    settings = stage.window.findChild(SettingsWindow)
    assert isinstance(settings, SettingsWindow)
    for tab in settings.tabs.values():
        QTest.mouseClick(tab, LEFT)
        assert not tab.hasFocus()
    settings.close()
    stage.window.activateWindow()
    stage.run(CommandId.DELETE)
    button = stage.window.sidebar.toast.findChild(Button)
    assert isinstance(button, Button)
    QTest.mouseClick(button, LEFT)
    assert stage.edit.hasFocus()


def test_letters_typed_in_the_transcript_are_written_in_the_composer(stage: Stage) -> None:
    stage.chat("Hello", "Yes.\n\n" * 80)
    view = stage.pane.view
    view.setFocus()
    QTest.keyClicks(view, "A")
    QTest.keyClicks(stage.edit, "nd")
    assert stage.edit.toPlainText() == "And"
    assert stage.edit.hasFocus()
    view.setFocus()
    QTest.keyClick(view, Key.Key_Home)
    QTest.keyClick(view, Key.Key_Space)
    assert stage.edit.toPlainText() == "And", "Space must scroll and not be typed"
    assert view.verticalScrollBar().value() > 0


@pytest.mark.parametrize("command", [CommandId.DELETE, CommandId.DELETE_LAST])
def test_undo_hides_the_toast_that_offers_it(stage: Stage, command: CommandId) -> None:
    stage.chat("Hello", "Yes.")
    stage.run(command)
    toasts = (stage.window.toast, stage.window.sidebar.toast)
    assert any(toast.isVisible() for toast in toasts)
    stage.run(CommandId.UNDO)
    assert not stage.window.sidebar.toast.isVisible()
    assert stage.window.toast.text.startswith("Undone: Delete ")


def test_long_title_does_not_change_the_width_of_the_sidebar(stage: Stage) -> None:
    stage.window.resize(Size.WINDOW_MIN_WIDTH, Size.WINDOW_MIN_HEIGHT)
    stage.chat("Hello", "Yes.")
    before = stage.window.sidebar.width()
    stage.rig.core.organiser.rename(stage.current, "A long title " * 9)
    stage.settle()
    assert stage.window.sidebar.width() == before
    title = stage.window.toolbar.title_button
    right = title.mapTo(stage.window, QPoint(title.width(), 0)).x()
    model = stage.window.toolbar.model_button
    assert right <= model.mapTo(stage.window, QPoint(0, 0)).x()
