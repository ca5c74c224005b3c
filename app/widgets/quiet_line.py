"""A quiet button with one line of text at the foot of the sidebar. Hidden while it has no text."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget
from typing_extensions import override

from app.theme.tokens import Space
from app.widgets.button import Button


class QuietLine(Button):
    """A button whose text is elided: a long one does not widen the sidebar."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__("", parent)
        self._line = ""
        self.setProperty("kind", "row")
        self.setProperty("place", "foot")
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def show_line(self, line: str, tip: str) -> None:
        self._line = line
        self.setVisible(bool(line))
        self.setAccessibleName(line)
        self.setToolTip(tip)
        self._elide()

    def _elide(self) -> None:
        inner = self.width() - 2 * Space.M  # inside the padding, which the style sheet sets
        right = Qt.TextElideMode.ElideRight
        self.setText(self.fontMetrics().elidedText(self._line, right, inner))

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    @override
    def changeEvent(self, e: QEvent) -> None:
        super().changeEvent(e)
        if e.type() is QEvent.Type.FontChange:
            self._elide()
