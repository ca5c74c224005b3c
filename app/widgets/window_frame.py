"""Functions that save and restore the position of a window, or bring a window to the front."""

from __future__ import annotations

import base64
import binascii

from PySide6.QtCore import QByteArray, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget


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
