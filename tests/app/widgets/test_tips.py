"""Tooltips: how wide they are, and when they go."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QToolTip

from app.theme.tokens import Size
from app.widgets.fields import LineField
from app.widgets.transcript.rows.row import RowAction
from tests.fakes.transcript_samples import answer, question, restored
from tests.fakes.transcript_stage import TranscriptStage

TIP = Qt.WindowType.ToolTip
pytestmark = pytest.mark.qt_log_ignore("^This plugin does not support raise")


def show_tip(transcript: TranscriptStage, *reasons: str) -> None:
    """Show the tooltip of a state line."""
    transcript.show([question(0), replace(answer(0, "x"), phase=restored(9, *reasons))])
    viewport, point = transcript.view.viewport(), transcript.find(RowAction.EXPLAIN)
    QTest.mouseMove(viewport, QPoint(3, 3))  # Qt does not report a move to the same place
    QTest.mouseMove(viewport, point)
    help_event = QHelpEvent(QEvent.Type.ToolTip, point, viewport.mapToGlobal(point))
    QApplication.sendEvent(viewport, help_event)
    assert QToolTip.isVisible()


def end_tip(transcript: TranscriptStage) -> None:
    # Qt itself hides a tooltip after 10 s.
    transcript.qtbot.waitUntil(lambda: not QToolTip.isVisible(), timeout=5000)


@pytest.mark.parametrize("reason", ["A sentence of the tooltip. " * 3, "A sentence. " * 40])
def test_tooltip_with_wrapped_lines_is_wide(transcript: TranscriptStage, reason: str) -> None:
    show_tip(transcript, reason)
    (tip,) = (one for one in QApplication.topLevelWidgets() if one.windowType() is TIP)
    assert tip.width() >= Size.TIP
    QToolTip.hideText()
    end_tip(transcript)


def test_tooltip_goes_when_the_mouse_leaves_its_part(transcript: TranscriptStage) -> None:
    show_tip(transcript, "Message 3 is new.")
    QTest.mouseMove(transcript.view.viewport(), QPoint(3, 3))
    end_tip(transcript)


def test_tooltip_goes_when_a_key_is_typed_into_a_field(transcript: TranscriptStage) -> None:
    show_tip(transcript, "Message 3 is new.")
    field = LineField(transcript.view)
    QTest.keyClicks(field, "x")
    end_tip(transcript)
