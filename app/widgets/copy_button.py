"""A button that copies a text, and says so for a moment."""

from __future__ import annotations

from PySide6.QtCore import QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton, QWidget

from app.theme.tokens import Millis
from app.words import commands


class CopyButton(QPushButton):
    """text is what it copies; name is what a screen reader says of it."""

    def __init__(self, name: str, parent: QWidget) -> None:
        super().__init__(commands.COPY, parent)
        self.copied_text = ""
        self.setAccessibleName(name)
        self.clicked.connect(self._copy)
        self._copied = QTimer(self, singleShot=True, interval=Millis.COPIED)
        self._copied.timeout.connect(lambda: self.setText(commands.COPY))

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.copied_text)
        self.setText(commands.COPIED)
        self._copied.start()
