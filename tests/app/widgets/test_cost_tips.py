"""Costs in the tooltips of buttons and rows, and in the menu of the thinking chip."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from PySide6.QtCore import QEvent, QPoint
from PySide6.QtGui import QHelpEvent, QTextDocument
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QToolTip, QWidget

from app.controllers import prompt_size
from app.widgets.transcript.rows.row import RowAction
from engine.events import Withdraw
from engine.types import Request
from tests.app.conftest import MakeStage
from tests.fakes.stage import Stage
from tests.fakes.transcript_stage import targets

LONG = "word " * 3_500  # the fake engine counts 4,379 tokens

# A tooltip is raised when its text changes.
pytestmark = pytest.mark.qt_log_ignore("This plugin does not support raise")


@pytest.fixture(autouse=True)
def no_other_counts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(prompt_size, "COUNT_MS", 1_000_000)
    yield
    QToolTip.hideText()


def tip() -> str:
    document = QTextDocument()
    document.setHtml(QToolTip.text() if QToolTip.isVisible() else "")
    return document.toPlainText().strip().replace("\N{NO-BREAK SPACE}", " ")


def point_at(stage: Stage, viewport: QWidget, point: QPoint) -> None:
    """Let the pointer rest at a point until its tooltip comes, and the cost in it."""

    def is_shown() -> bool:
        # The tooltip before may have made the mouse leave the view, and that event may come late.
        QTest.mouseMove(viewport, point + QPoint(1, 1))  # Qt reports only a pointer that has moved
        QTest.mouseMove(viewport, point)
        help_event = QHelpEvent(QEvent.Type.ToolTip, point, viewport.mapToGlobal(point))
        QApplication.sendEvent(viewport, help_event)
        stage.settle()
        return bool(tip())

    stage.wait_until(is_shown)


def point_at_button(stage: Stage, action: RowAction) -> None:
    viewport = stage.pane.view.viewport()
    point_at(stage, viewport, next(targets(stage.pane.view, action)))


def test_tooltip_of_regenerate_has_the_cost_of_its_request(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    point_at_button(stage, RowAction.REGENERATE)
    asked = stage.engine.counts[-1]
    assert isinstance(asked, Request)
    assert [one.content for one in asked.messages] == ["Hello"]
    assert tip() == "Regenerate · Reads 5 tokens"


def test_tooltip_of_a_version_has_the_cost_of_going_on_there(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.click(RowAction.REGENERATE)
    stage.answer("Short.")
    stage.engine.num_cached = 3
    point_at_button(stage, RowAction.PREVIOUS_VERSION)
    assert [one.content for one in stage.engine.counts[-1].messages] == ["Hello", "Hi"]
    assert tip() == "Previous Version · Reads 6 tokens"


def test_tooltip_of_a_chat_has_the_cost_of_its_next_message(stage: Stage) -> None:
    stage.chat("Hello", LONG)
    rect = stage.list.visualRect(stage.list.model().index(1, 0))
    point_at(stage, stage.list.viewport(), rect.center())
    stage.wait_until(lambda: "Reads" in tip())
    assert tip() == "Hello\nTo be read · Reads all 4,384 tokens"


def test_newer_question_withdraws_the_one_before(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.engine.hold_counts = True
    point_at_button(stage, RowAction.REGENERATE)
    first = len(stage.engine.counts)
    rect = stage.list.visualRect(stage.list.model().index(1, 0))
    point_at(stage, stage.list.viewport(), rect.center())
    stage.wait_until(lambda: len(stage.engine.counts) > first)
    assert any(isinstance(command, Withdraw) for command in stage.engine.commands)
    stage.engine.finish_counts()
    stage.settle()
    assert "Regenerate" not in tip(), "the pointer is elsewhere"


def test_menu_of_thinking_has_the_costs_of_the_other_choices(make_stage: MakeStage) -> None:
    stage = make_stage(hold_load=True)
    stage.engine.facts = replace(stage.engine.facts, has_thinking=True, can_keep_thinking=True)
    stage.engine.finish_load()
    stage.wait_until(lambda: stage.rig.models.status.facts is not None)
    stage.chat("Hello", LONG)
    menu = stage.composer.thinking.menu()
    menu.aboutToShow.emit()
    stage.wait_until(lambda: "·" in menu.actions()[4].text())
    texts = [action.text() for action in menu.actions()]
    assert texts[:3] == ["Auto", "On · Reads all 4,384 tokens", "Off · Reads all 4,384 tokens"]
    assert "Keep Earlier Thinking · Reads all 4,384 tokens" in texts
