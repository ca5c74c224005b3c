"""The Qt application, with the files that the system asks it to open."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, Signal
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication
from typing_extensions import override


class Application(QApplication):
    """On a Mac a double-click, and what is dropped on the Dock's icon, come as events."""

    files_opened = Signal(object)  # tuple[Path, ...]

    @override
    def event(self, event: QEvent) -> bool:
        if isinstance(event, QFileOpenEvent) and event.file():
            self.files_opened.emit((Path(event.file()),))
            return True
        return super().event(event)
