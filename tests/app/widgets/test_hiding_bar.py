"""Tests of the scroll bar that hides while nothing scrolls."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication, QPlainTextEdit
from pytestqt.qtbot import QtBot

from app.widgets import hiding_bar
from app.widgets.hiding_bar import HidingBar

REST_MS = 50


@pytest.fixture(autouse=True)
def short_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hiding_bar, "REST_MS", REST_MS)


def _field(qtbot: QtBot) -> tuple[QPlainTextEdit, HidingBar]:
    """Return a field with more text than fits, and its scroll bar."""
    field = QPlainTextEdit("line\n" * 100)
    bar = HidingBar(field)
    field.setVerticalScrollBar(bar)
    field.resize(200, 100)
    qtbot.addWidget(field)
    field.show()
    qtbot.waitExposed(field)
    return field, bar


def _turn_wheel(field: QPlainTextEdit) -> None:
    at = QPoint(20, 20)
    event = QWheelEvent(
        QPointF(at),
        QPointF(field.viewport().mapToGlobal(at)),
        QPoint(),
        QPoint(0, -120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(field.viewport(), event)


def test_bar_hides_at_rest_and_shows_while_scrolling(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hiding_bar, "hides_bars", lambda: True)
    field, bar = _field(qtbot)
    qtbot.waitUntil(lambda: not bar.shows_handle)
    at_rest = bar.grab().toImage()
    _turn_wheel(field)
    assert bar.value() > 0
    assert bar.grab().toImage() != at_rest
    qtbot.waitUntil(lambda: not bar.shows_handle)
    assert bar.grab().toImage() == at_rest


def test_bar_stays_where_the_system_shows_bars_always(qtbot: QtBot) -> None:
    _, bar = _field(qtbot)
    if hiding_bar.hides_bars():
        pytest.skip("this Mac is set to hide scroll bars")
    qtbot.wait(2 * REST_MS)
    assert bar.shows_handle
