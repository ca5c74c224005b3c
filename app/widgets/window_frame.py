"""The window's place on the screen, as text for the settings; and before all other windows."""

from __future__ import annotations

import base64
import binascii

from PySide6.QtCore import QByteArray, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget


def bring_to_front(window: QWidget) -> None:
    """Wherever it is: closed, minimised, behind others."""
    window.setWindowState(window.windowState() & ~Qt.WindowState.WindowMinimized)
    window.show()
    window.raise_()
    window.activateWindow()


def frame_text(window: QWidget) -> str:
    return base64.b64encode(window.saveGeometry().data()).decode()


def restore_frame(window: QWidget, text: str) -> None:
    """Put the window where it was, unless no screen is there any more."""
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
