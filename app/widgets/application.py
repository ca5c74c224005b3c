"""The QApplication, which turns the file-open events of macOS into a signal."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, Signal
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication
from typing_extensions import override


class Application(QApplication):
    """The Qt application. macOS reports files opened in Finder or dropped on the Dock as events."""

    files_opened = Signal(object)  # tuple[Path, ...]

    @override
    def event(self, event: QEvent) -> bool:
        if isinstance(event, QFileOpenEvent) and event.file():
            self.files_opened.emit((Path(event.file()),))
            return True
        return super().event(event)
