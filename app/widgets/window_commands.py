"""The menu commands of the app's windows: close, full screen, minimise, zoom, quit. Main thread."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QApplication, QWidget
from typing_extensions import override

from app.widgets.commands import Actions, CommandId, connect_actions
from app.widgets.own_windows import OwnWindows
from app.words import commands as words

# Commands that work in every window of the app.
EVERYWHERE = (CommandId.CLOSE, CommandId.SETTINGS, CommandId.QUIT)


class WindowCommands(QObject):
    """The commands. Close acts on the active window, the others on the main window."""

    def __init__(self, window: QWidget, quit_app: Callable[[], None], actions: Actions) -> None:
        super().__init__(window)
        self._window = window
        self._full_screen = actions[CommandId.FULL_SCREEN]
        slots = {
            CommandId.CLOSE: self._close_active,
            CommandId.QUIT: quit_app,
            CommandId.FULL_SCREEN: self._toggle_full_screen,
            CommandId.MINIMISE: window.showMinimized,
            CommandId.ZOOM: self._toggle_maximized,
            CommandId.ALL_TO_FRONT: _raise_all,
        }
        connect_actions(actions, slots)
        OwnWindows(window, [actions[command] for command in EVERYWHERE])
        window.installEventFilter(self)

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.WindowStateChange:
            is_full = self._window.isFullScreen()
            self._full_screen.setText(words.END_FULL_SCREEN if is_full else words.FULL_SCREEN)
        return False

    def _close_active(self) -> None:
        """Close the active window of the app: the main window, the settings or a dialog."""
        (QApplication.activeWindow() or self._window).close()

    def _toggle_full_screen(self) -> None:
        self._window.setWindowState(self._window.windowState() ^ Qt.WindowState.WindowFullScreen)

    def _toggle_maximized(self) -> None:
        self._window.setWindowState(self._window.windowState() ^ Qt.WindowState.WindowMaximized)


def _raise_all() -> None:
    """Raise all visible windows of the app. The active one stays on top."""
    active = QApplication.activeWindow()
    for window in QApplication.topLevelWidgets():
        if window.isVisible() and window is not active:
            window.raise_()
    if active is not None:
        active.raise_()
