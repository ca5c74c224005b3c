"""A window at rest: no timer repeats, and the caret repaints its own rectangle."""

from __future__ import annotations

import gc

import pytest
from PySide6.QtCore import QEvent, QObject, QRect, Qt, QTimer
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QApplication
from shiboken6 import isValid
from typing_extensions import override

from app.bridge.garbage import GarbageSearch
from app.controllers.backups import LOOK_MS
from app.settings import Settings
from app.widgets.choice_line import ChoiceLine
from app.widgets.commands import CommandId
from app.widgets.details import Details
from app.widgets.folder_watch import FolderWatch
from app.widgets.model_picker import ModelPicker
from app.widgets.models_window import ModelsWindow
from app.widgets.switcher import QuickSwitcher
from tests.app.conftest import MakeStage
from tests.fakes.rig import FakeCatalog
from tests.fakes.stage import Stage

GONE = "/Volumes/Disk/Chosen-27B"


def repeating_timers() -> list[QTimer]:
    timers = [one for one in gc.get_objects() if isinstance(one, QTimer)]
    return [one for one in timers if isValid(one) and one.isActive() and not one.isSingleShot()]


def test_new_window_has_no_popup_and_no_card_before_one_is_needed(stage: Stage) -> None:
    for kind in (ModelPicker, QuickSwitcher, Details):
        assert not stage.window.findChildren(kind), kind
    for card in stage.pane.cards.content.findChildren(ChoiceLine):
        assert not card.buttons, card


def test_window_at_rest_has_no_timer_that_repeats(stage: Stage) -> None:
    garbage = GarbageSearch()
    stage.chat("Hello", "Hi. ```python\nx = 1\n```")
    stage.wait_until(lambda: stage.pane.view.statistics().is_idle)
    found = [(one.interval(), one.parent()) for one in repeating_timers()]
    garbage.close()
    assert found == []


@pytest.mark.qt_log_ignore("does not support raise", extend=True)
def test_folders_are_checked_at_intervals_only_while_models_are_in_view(
    stage: Stage, qapp: QApplication
) -> None:
    (watch,) = stage.window.findChildren(FolderWatch)
    assert not watch.is_active
    stage.run(CommandId.GET_MODELS)
    assert watch.is_active
    (models,) = stage.window.findChildren(ModelsWindow)
    models.close()
    assert not watch.is_active

    stage.rig.catalog.cards = ()
    qapp.applicationStateChanged.emit(Qt.ApplicationState.ApplicationActive)
    stage.wait_until(lambda: stage.rig.models.cards == ())


def test_folders_are_checked_at_intervals_while_a_window_in_view_has_no_model(
    make_stage: MakeStage,
) -> None:
    catalog = FakeCatalog(gone={GONE})
    stage = make_stage(settings=Settings(model_path=GONE), catalog=catalog)
    (watch,) = stage.window.findChildren(FolderWatch)
    assert watch.is_active
    stage.window.hide()
    assert not watch.is_active
    stage.window.show()
    stage.window.setWindowState(Qt.WindowState.WindowMinimized)
    assert not watch.is_active


def test_look_for_a_backup_follows_a_use_of_the_database_or_midnight(stage: Stage) -> None:
    timer = stage.core.backups.findChild(QTimer)
    assert timer is not None
    stage.settle()
    for _ in range(2):  # the window reads the size of the first backup from the database
        stage.core.backups.look()
        stage.wait_until(lambda: not stage.core.backups.is_running)
    assert timer.remainingTime() > 1.05 * LOOK_MS
    stage.settle()  # uses the database
    assert 0 < timer.remainingTime() <= 1.05 * LOOK_MS  # the timer is coarse


class Paints(QObject):
    """The rectangles of the paint events of a widget, and the layouts of its text."""

    def __init__(self) -> None:
        super().__init__()
        self.rects: list[QRect] = []
        self.num_layouts = 0

    def note_layout(self) -> None:
        self.num_layouts += 1

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QPaintEvent):
            self.rects.append(event.rect())
        return False


def test_blinking_caret_repaints_its_rectangle_without_layout(
    stage: Stage, qapp: QApplication
) -> None:
    stage.edit.set_text("One line\n" * 3 + "a line with the caret")
    stage.window.activateWindow()
    stage.edit.setFocus()
    stage.settle()
    paints = Paints()
    stage.edit.lines.update.connect(paints.note_layout)
    stage.edit.lines.documentSizeChanged.connect(paints.note_layout)
    stage.edit.viewport().installEventFilter(paints)
    flash_ms = qapp.cursorFlashTime()
    qapp.setCursorFlashTime(20)
    stage.wait_until(lambda: len(paints.rects) >= 2)  # also paints the changed text
    paints.rects.clear()
    paints.num_layouts = 0
    stage.wait_until(lambda: len(paints.rects) >= 4)
    qapp.setCursorFlashTime(flash_ms)

    around = stage.edit.cursorRect().adjusted(-6, -2, 6, 2)
    assert [one for one in paints.rects if not around.contains(one)] == []
    assert paints.num_layouts == 0
