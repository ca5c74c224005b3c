"""The QApplication. It turns the file-open events of macOS into a signal."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, Signal
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication
from typing_extensions import override


class Application(QApplication):
    """The Qt application.

    macOS sends an event for a file that is opened in Finder or dropped on the Dock. This class then
    emits `files_opened`.
    """

    files_opened = Signal(object)  # argument: tuple[Path, ...], the opened files

    @override
    def event(self, event: QEvent) -> bool:
        if isinstance(event, QFileOpenEvent) and event.file():
            self.files_opened.emit((Path(event.file()),))
            return True
        return super().event(event)
