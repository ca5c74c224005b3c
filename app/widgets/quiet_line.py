"""A quiet button with one line of text at the foot of the sidebar. Hidden while it has no text."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget
from typing_extensions import override

from app.theme.tokens import Space
from app.widgets.button import Button

_DOT = " · "  # between the parts of a line


class QuietLine(Button):
    """A button whose text is elided: a long one does not widen the sidebar.

    If `drops_parts` is True, the last parts of a line that is too long are left out first.
    """

    def __init__(self, parent: QWidget, *, drops_parts: bool = False) -> None:
        super().__init__("", parent)
        self._drops_parts = drops_parts
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
        line, metrics = self._line, self.fontMetrics()
        while self._drops_parts and _DOT in line and metrics.horizontalAdvance(line) > inner:
            line = line.rpartition(_DOT)[0]
        self.setText(metrics.elidedText(line, Qt.TextElideMode.ElideRight, inner))

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    @override
    def changeEvent(self, e: QEvent) -> None:
        super().changeEvent(e)
        if e.type() is QEvent.Type.FontChange:
            self._elide()
