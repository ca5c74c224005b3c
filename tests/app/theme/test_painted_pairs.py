"""Tests that each text colour and its background are a pair listed in tests/fakes/contrast.py.

The test paints the window in scenes of tests/screenshots, and paints each control with the
keyboard focus and with the mouse pointer over it. `make test` paints SCENES_HERE, which have most
pairs (86 of 97); `make soak` paints every scene.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, Qt
from PySide6.QtGui import QHoverEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractItemView, QApplication, QDialog, QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.theme import palette
from app.widgets.branch_map.compare_window import CompareWindow
from app.widgets.branch_map.window import BranchMapWindow
from app.widgets.main_window import MainWindow
from app.widgets.models_window import ModelsWindow
from app.widgets.settings_window import SettingsWindow
from app.widgets.transcript.rows.row import Target
from tests.fakes.contrast import PAINTED_PAIRS, PaintKind, Pair
from tests.fakes.paint_recorder import PaintRecorder, telling_colors
from tests.fakes.stage import Stage
from tests.screenshots.make import SCENES, View, staged

pytestmark = [
    pytest.mark.slow,
    # The offscreen platform logs these messages for every popup.
    pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True),
]
TOUCHED = ("two-turns", "failed", "stopped", "queued", "finding", "editing", "inspector", "empty")
SCENES_HERE = (
    *("crashed", "no-model", "failed", "deleted", "editing", "finding", "readme", "inspector"),
    *("recently-deleted", "folder-sheet", "settings-checked", "settings-several", "picker"),
    *("branch-overview", "branches-compared"),
)
GRID = 12  # distance in pixels of the points tried; every click target is larger


@pytest.fixture(
    scope="module",
    params=[SCENES_HERE, pytest.param(tuple(SCENES), marks=pytest.mark.soak)],
    ids=["here", "every"],
)
def recorder(request: pytest.FixtureRequest, qapp: QApplication) -> Iterator[PaintRecorder]:
    """Return a recorder that has recorded the window in several scenes."""
    colors, by_name = telling_colors()
    recorder = PaintRecorder(by_name)
    with pytest.MonkeyPatch.context() as patched:
        for name in ("LIGHT", "LIGHT_SHARP"):
            patched.setattr(palette, name, colors)
        for name in request.param:
            scene = SCENES[name]
            with staged(scene, View(scene.sizes[0])) as stage:
                look(recorder, stage, name)
        yield recorder


def look(recorder: PaintRecorder, stage: Stage, name: str) -> None:
    window = stage.window
    recorder.record(window, name)
    if window.picker.isVisible():
        hover_rows(recorder, window.picker, window.picker.list, name)
    windows = [
        *window.findChildren(SettingsWindow),
        *window.findChildren(ModelsWindow),
        *window.findChildren(BranchMapWindow),
        *window.findChildren(CompareWindow),
    ]
    over = (*window.findChildren(QDialog), *windows, window.picker)
    for one in (*over, QApplication.activePopupWidget()):
        if one is not None and one.isVisible():
            recorder.record(one, name)
            if one in windows:
                touch(recorder, one, name)
            one.hide()
    if name in TOUCHED:
        touch(recorder, window, name)
        hover_rows(recorder, window, window.sidebar.list, name)
        hover_messages(recorder, window, name)


def touch(recorder: PaintRecorder, window: QWidget, name: str) -> None:
    """Record the colours of each control with the keyboard focus, then with the mouse over it."""
    for widget in window.findChildren(QWidget):
        if not widget.isVisible() or not widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
            continue
        part = QRect(widget.mapTo(window, QPoint(0, 0)), widget.size())
        widget.setFocus(Qt.FocusReason.TabFocusReason)
        recorder.record(window, f"{name}, focus", part)
        widget.clearFocus()
        widget.setAttribute(Qt.WidgetAttribute.WA_UnderMouse)
        recorder.record(window, f"{name}, hover", part)
        widget.setAttribute(Qt.WidgetAttribute.WA_UnderMouse, on=False)


def hover_rows(
    recorder: PaintRecorder, window: QWidget, rows: QAbstractItemView, name: str
) -> None:
    viewport, model = rows.viewport(), rows.model()
    for number in range(min(3, model.rowCount())):
        rect = rows.visualRect(model.index(number, 0))
        at = QPointF(rect.center())
        QApplication.sendEvent(viewport, QHoverEvent(QEvent.Type.HoverMove, at, at, QPointF()))
        part = QRect(viewport.mapTo(window, rect.topLeft()), rect.size())
        recorder.record(window, f"{name}, row", part)


def hover_messages(recorder: PaintRecorder, window: MainWindow, name: str) -> None:
    """Record the transcript's colours with the mouse over each of its buttons and links."""
    view, found = window.pane.view, set[Target]()
    viewport = view.viewport()
    for y in range(0, viewport.height(), GRID):
        for x in range(0, viewport.width(), GRID):
            target = view.target_at(QPointF(x, y))
            if target is not None and target not in found:
                found.add(target)
                QTest.mouseMove(viewport, QPoint(x, y))
                corner = viewport.mapTo(window, QPoint(0, y - GRID))
                part = QRect(corner.x(), corner.y(), viewport.width(), 3 * GRID)
                recorder.record(window, f"{name}, {target.action.name}", part)


def test_every_painted_pair_is_listed(recorder: PaintRecorder) -> None:
    unlisted = [
        f"{pair}: {where}" for pair, where in recorder.pairs.items() if pair not in PAINTED_PAIRS
    ]
    assert len(recorder.pairs) > 65
    assert not unlisted, "\n".join(unlisted)
    on_selected = {pair.ink for pair in recorder.pairs if pair.background == "selected"}
    assert "tertiary" not in on_selected


def test_recorder_finds_an_unlisted_pair(qtbot: QtBot) -> None:
    _colors, by_name = telling_colors()
    recorder = PaintRecorder(by_name)
    label = QLabel("words")
    qtbot.addWidget(label)
    ink, background = (by_name[name].name() for name in ("must_read.ink", "selected"))
    border = by_name["link"].name()
    label.setStyleSheet(f"color: {ink}; background: {background}; border: 2px solid {border};")
    recorder.record(label, "a label")
    assert set(recorder.pairs) == {
        Pair("must_read.ink", "selected"),
        Pair("link", "selected", kind=PaintKind.MARK),
    }
    assert not set(recorder.pairs) & set(PAINTED_PAIRS)


def test_recorder_finds_text_in_a_colour_outside_the_tokens(qtbot: QtBot) -> None:
    _colors, by_name = telling_colors()
    recorder = PaintRecorder(by_name)
    label = QLabel("words")
    qtbot.addWidget(label)
    label.setStyleSheet(f"color: #010203; background: {by_name['canvas'].name()};")
    recorder.record(label, "a label")
    assert set(recorder.pairs) == {Pair("#010203", "canvas")}
