"""A button that copies a text and confirms the copy for 1.2 seconds."""

from __future__ import annotations

from PySide6.QtCore import QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from app.theme.tokens import Millis
from app.widgets.button import Button
from app.words import commands


class CopyButton(Button):
    """A button that copies `copied_text` to the clipboard. `name` is its accessible name."""

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
