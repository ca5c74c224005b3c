"""A dot in the colour of a state, beside the text that explains it. Main thread."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from app.theme.palette import Theme
from app.theme.tokens import Colors, Type

_DOT = 10  # diameter in px


class ColorDot(QWidget):
    """The dot. It stands in the middle of the first line of the text."""

    def __init__(self, theme: Theme, ink: Callable[[Colors], str], parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._ink = ink
        theme.changed.connect(self.update)

    @override
    def sizeHint(self) -> QSize:
        zoom = max(1.0, self._theme.zoom)
        return QSize(round(_DOT * zoom), round(Type.UI.line * zoom))

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._ink(self._theme.colors)))
        dot = QRectF(0, 0, self.width(), self.width())
        dot.moveCenter(QRectF(self.rect()).center())
        painter.drawEllipse(dot)
