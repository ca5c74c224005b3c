"""Tests of the context menu of a message."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from app.widgets.commands import CommandId
from app.widgets.message_edit import MessageEdit
from app.widgets.transcript.rows.row import RowAction
from app.widgets.why_window import WhyWindow
from tests.fakes.stage import Stage
from tests.fakes.transcript_stage import targets

pytestmark = pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True)
LINK = "See [the **long** manual](https://example.org/manual)"


def open_menu(stage: Stage, at: QPoint) -> QMenu:
    viewport = stage.pane.view.viewport()
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, viewport.mapToGlobal(at))
    QApplication.sendEvent(viewport, event)
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    return menu


def labels(menu: QMenu) -> list[str]:
    return [one.text() for one in menu.actions() if not one.isSeparator()]


def choose(stage: Stage, at: QPoint, label: str) -> None:
    menu = open_menu(stage, at)
    action = next(one for one in menu.actions() if one.text() == label)
    assert action.isEnabled()
    QTest.mouseClick(menu, Qt.MouseButton.LeftButton, pos=menu.actionGeometry(action).center())
    stage.settle()


def answer_at(stage: Stage) -> QPoint:
    """Return a point in the last answer, above its buttons."""
    *_, point = targets(stage.pane.view, RowAction.REGENERATE)
    return point - QPoint(0, 22)


def question_at(stage: Stage) -> QPoint:
    return next(targets(stage.pane.view, RowAction.EDIT)) - QPoint(0, 30)


@pytest.mark.slow
def test_menu_has_the_actions_of_the_message(stage: Stage) -> None:
    stage.chat("One", "First.")
    menu = open_menu(stage, question_at(stage))
    assert labels(menu) == [
        "Copy Message",
        "Quote in Reply",
        "Edit",
        "Fork into a New Chat",
        "Delete This and Everything After",
    ]
    menu.close()
    menu = open_menu(stage, answer_at(stage))
    assert labels(menu) == [
        "Copy Message",
        "Quote in Reply",
        "Regenerate",
        "Edit Answer",
        "Fork into a New Chat",
        "Why Was This Read?",
        "Delete This Version",
    ]
    menu.close()
    choose(stage, answer_at(stage), "Regenerate")
    stage.answer("Second.")
    assert stage.texts == ["One", "Second."]
    choose(stage, answer_at(stage), "Delete This Version")
    assert stage.texts == ["One", "First."]
    choose(stage, question_at(stage), "Delete This and Everything After")
    assert stage.texts == []


def test_link_and_selection_can_be_copied_and_quoted(stage: Stage) -> None:
    stage.chat("Where?", LINK)
    clipboard = QGuiApplication.clipboard()
    link = next(targets(stage.pane.view, RowAction.OPEN_LINK))
    choose(stage, link, "Copy Link")
    assert clipboard.text() == "https://example.org/manual"
    choose(stage, link, "Copy Link Text")
    assert clipboard.text() == "the long manual"
    stage.pane.view.selection.select_all()
    choose(stage, answer_at(stage), "Copy")
    assert clipboard.text() == f"Where?\n\n{LINK}"


def test_latex_of_a_formula_can_be_copied_and_the_menu_tells_why_it_is_not_drawn(
    stage: Stage, qtbot: QtBot
) -> None:
    stage.chat("Formulas", "Drawn: $x^2$\n\n$$\ny^2\n$$\n\n| a |\n|---|\n| $\\nope$ |")
    qtbot.waitUntil(lambda: stage.pane.view.statistics().is_idle)
    points = {
        target.link: point
        for point in targets(stage.pane.view, RowAction.EXPLAIN)
        if (target := stage.pane.view.target_at(QPointF(point))) is not None
    }
    for latex in ("x^2", "y^2", r"\nope"):
        menu = open_menu(stage, points[latex])
        reasons = [one.text() for one in menu.actions() if one.text().startswith("Shown as LaTeX")]
        assert len(reasons) == (latex == r"\nope")
        menu.close()
        choose(stage, points[latex], "Copy LaTeX")
        assert QGuiApplication.clipboard().text() == latex


def test_quote_is_put_below_the_text_of_the_composer(stage: Stage) -> None:
    stage.chat("One", "First.\n\nSecond.")
    stage.type("Why?")
    choose(stage, answer_at(stage), "Quote in Reply")
    assert stage.edit.toPlainText() == "Why?\n\n> First.\n>\n> Second.\n\n"
    assert stage.window.focusWidget() is stage.edit


def test_entries_that_change_the_chat_are_disabled_during_an_answer(stage: Stage) -> None:
    stage.chat("One", "First.")
    at = question_at(stage)
    stage.send("Two")
    stage.pane.view.jump_to_start()
    menu = open_menu(stage, at)
    disabled = [one.text() for one in menu.actions() if not one.isEnabled()]
    assert disabled == ["Edit", "Delete This and Everything After"]
    menu.close()


def test_answer_is_edited_and_forked_from_its_menu(stage: Stage) -> None:
    stage.chat("One", "First.")
    choose(stage, answer_at(stage), "Edit Answer")
    (field,) = [one for one in stage.pane.view.findChildren(MessageEdit) if one.isVisible()]
    field.setPlainText("Better.")
    field.submitted.emit()
    stage.settle()
    assert stage.texts == ["One", "Better."]
    assert len(stage.engine.submitted) == 1, "no answer is requested"
    stage.rig.origin.time_s += 1.0
    choose(stage, answer_at(stage), "Fork into a New Chat")
    assert stage.texts == ["One", "Better."]
    assert stage.rows == ["TODAY", "One (fork)", "One"]
    assert stage.window.sidebar.toast.text == "Forked “One”"
    for command, rows in ((CommandId.UNDO, ["One"]), (CommandId.REDO, ["One (fork)", "One"])):
        stage.run(command)
        assert stage.rows == ["TODAY", *rows]
    choose(stage, question_at(stage), "Fork into a New Chat")
    assert stage.texts == []
    assert stage.edit.toPlainText() == "One"


def test_menu_of_an_answer_opens_the_window_about_what_was_read(stage: Stage) -> None:
    stage.chat("One", "First.")
    choose(stage, answer_at(stage), "Why Was This Read?")
    window = stage.window.findChild(WhyWindow)
    assert isinstance(window, WhyWindow)
    assert window.isVisible()
