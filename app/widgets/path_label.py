"""A label with the path of a file or folder. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget
from typing_extensions import override


class PathLabel(QLabel):
    """A label that shows as much of a path as fits: the middle of a longer path is elided."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._shown = ""
        self.setProperty("kind", "row")
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def show_path(self, path: str, empty: str = "") -> None:
        """Show the path, or the text `empty` if there is no path."""
        self._shown = path or empty
        self.setToolTip(path)
        self.setAccessibleName(self._shown)
        self._elide()

    def _elide(self) -> None:
        middle = Qt.TextElideMode.ElideMiddle
        self.setText(self.fontMetrics().elidedText(self._shown, middle, self.width()))

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    @override
    def changeEvent(self, arg__1: QEvent) -> None:
        super().changeEvent(arg__1)
        if arg__1.type() is QEvent.Type.FontChange:
            self._elide()
