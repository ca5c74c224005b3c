"""The position of a window: saved, restored, or at the front. Main thread."""

from __future__ import annotations

import base64
import binascii

from PySide6.QtCore import QByteArray, QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from app.controllers.preferences import Preferences
from app.theme.tokens import Millis

_CHANGES = (QEvent.Type.Move, QEvent.Type.Resize, QEvent.Type.WindowStateChange)


class FrameSaver(QObject):
    """Saves the frame of a window a short time after it has changed, so that a kill keeps it."""

    def __init__(self, window: QWidget, preferences: Preferences) -> None:
        super().__init__(window)
        self._window = window
        self._preferences = preferences
        self._timer = QTimer(self, singleShot=True, interval=Millis.FRAME_SAVE)
        self._timer.timeout.connect(self._save)
        window.installEventFilter(self)

    def _save(self) -> None:
        if self._window.isVisible():
            self._preferences.change(window_geometry=frame_text(self._window))

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in _CHANGES:
            self._timer.start()
        return super().eventFilter(watched, event)


def bring_to_front(window: QWidget) -> None:
    """Show and activate a window that is closed, minimised or behind other windows."""
    window.setWindowState(window.windowState() & ~Qt.WindowState.WindowMinimized)
    window.show()
    window.raise_()
    window.activateWindow()


def frame_text(window: QWidget) -> str:
    """Return the position and size of a window as base64 text for the settings."""
    return base64.b64encode(window.saveGeometry().data()).decode()


def restore_frame(window: QWidget, text: str) -> None:
    """Restore position and size from frame_text, or centre the window if it would be off-screen."""
    try:
        saved = base64.b64decode(text, validate=True)
    except binascii.Error:
        return
    size = window.size()
    if not window.restoreGeometry(QByteArray(saved)):
        return
    centre = window.frameGeometry().center()
    if not any(screen.availableGeometry().contains(centre) for screen in QGuiApplication.screens()):
        window.resize(size)
        area = QGuiApplication.primaryScreen().availableGeometry()
        window.move(area.center() - window.rect().center())
