"""The app's other windows: where they open, and the keys that work in all of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QWidget

from app.widgets.branch_map.window import BranchMapWindow
from app.widgets.commands import CommandId
from app.widgets.memory_window import MemoryWindow
from app.widgets.message_sheet import MessageSheet
from app.widgets.models_window import ModelsWindow
from app.widgets.settings_window import SettingsWindow
from tests.fakes.stage import CTRL, Key, Stage

pytestmark = pytest.mark.qt_log_ignore("does not support raise", extend=True)
WINDOWS: dict[CommandId, Callable[[Stage], QWidget | None]] = {
    CommandId.SETTINGS: lambda stage: stage.window.findChild(SettingsWindow),
    CommandId.MEMORY_MAP: lambda stage: stage.window.findChild(MemoryWindow),
    CommandId.GET_MODELS: lambda stage: stage.window.findChild(ModelsWindow),
    CommandId.BRANCH_MAP: lambda stage: stage.window.findChild(BranchMapWindow),
    CommandId.SHORTCUTS: lambda stage: stage.window.findChild(QDialog, "shortcuts"),
    CommandId.ABOUT: lambda stage: stage.window.findChild(MessageSheet),
}


def shown(stage: Stage, command: CommandId) -> QWidget:
    if command is CommandId.BRANCH_MAP:
        stage.chat("One", "1")
    stage.run(command)
    window = WINDOWS[command](stage)
    assert window is not None
    stage.settle()
    return window


def test_window_opens_over_the_middle_of_the_main_window(stage: Stage) -> None:
    stage.window.resize(640, 480)
    for command in (CommandId.SETTINGS, CommandId.GET_MODELS, CommandId.BRANCH_MAP):
        stage.window.move(120, 100)
        window = shown(stage, command)
        off = window.frameGeometry().center() - stage.window.frameGeometry().center()
        assert off.manhattanLength() < 40, command
        window.close()
        stage.window.move(60, 140)
        stage.run(command)
        off = window.frameGeometry().center() - stage.window.frameGeometry().center()
        assert off.manhattanLength() < 40, f"{command} opens there again"
        window.close()


def test_window_that_opens_over_a_window_at_the_edge_is_inside_the_screen(stage: Stage) -> None:
    area = stage.window.screen().availableGeometry()
    stage.window.move(area.right() - 100, area.bottom() - 100)
    assert area.contains(shown(stage, CommandId.SETTINGS).geometry())


def activate(stage: Stage, window: QWidget) -> None:
    window.activateWindow()
    stage.wait_until(lambda: QApplication.activeWindow() is window)


def test_close_key_closes_every_window(stage: Stage) -> None:
    for command in WINDOWS:
        window = shown(stage, command)
        activate(stage, window)
        closed: list[bool] = []
        window.destroyed.connect(partial(closed.append, True))
        QTest.keyClick(window, Key.Key_W, CTRL)
        stage.wait_until(partial(is_closed, window, closed))
        assert stage.window.isVisible(), command


def is_closed(window: QWidget, destroyed: list[bool]) -> bool:
    return bool(destroyed) or not window.isVisible()


def test_settings_key_opens_the_settings_from_every_window(stage: Stage) -> None:
    for command in WINDOWS:
        if command is CommandId.SETTINGS:
            continue
        window = shown(stage, command)
        activate(stage, window)
        QTest.keyClick(window, Key.Key_Comma, CTRL)
        settings = stage.window.findChild(SettingsWindow)
        assert settings is not None
        assert settings.isVisible(), command
        settings.close()
        window.close()
