"""The app's other windows: where they open, and the keys that work in all of them."""

from __future__ import annotations

from collections.abc import Callable

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


@pytest.mark.parametrize(
    "command", [CommandId.SETTINGS, CommandId.GET_MODELS, CommandId.BRANCH_MAP]
)
def test_window_opens_over_the_middle_of_the_main_window(stage: Stage, command: CommandId) -> None:
    stage.window.resize(640, 480)
    stage.window.move(120, 100)
    window = shown(stage, command)
    off = window.frameGeometry().center() - stage.window.frameGeometry().center()
    assert off.manhattanLength() < 40
    window.close()
    stage.window.move(60, 140)
    stage.run(command)
    off = window.frameGeometry().center() - stage.window.frameGeometry().center()
    assert off.manhattanLength() < 40, "it opens there again"


def test_window_that_opens_over_a_window_at_the_edge_is_inside_the_screen(stage: Stage) -> None:
    area = stage.window.screen().availableGeometry()
    stage.window.move(area.right() - 100, area.bottom() - 100)
    assert area.contains(shown(stage, CommandId.SETTINGS).geometry())


@pytest.mark.parametrize("command", WINDOWS)
def test_close_key_closes_every_window(stage: Stage, command: CommandId) -> None:
    window = shown(stage, command)
    window.activateWindow()
    stage.wait_until(lambda: QApplication.activeWindow() is window)
    closed: list[bool] = []
    window.destroyed.connect(lambda: closed.append(True))
    QTest.keyClick(window, Key.Key_W, CTRL)
    stage.wait_until(lambda: bool(closed) or not window.isVisible())
    assert stage.window.isVisible()


@pytest.mark.parametrize("command", [one for one in WINDOWS if one is not CommandId.SETTINGS])
def test_settings_key_opens_the_settings_from_every_window(
    stage: Stage, command: CommandId
) -> None:
    window = shown(stage, command)
    window.activateWindow()
    stage.wait_until(lambda: QApplication.activeWindow() is window)
    QTest.keyClick(window, Key.Key_Comma, CTRL)
    settings = stage.window.findChild(SettingsWindow)
    assert settings is not None
    assert settings.isVisible()
    window.close()
