"""The round button that leads to the end of the transcript. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QWidget
from typing_extensions import override

from app.theme.icons import GRID, Icon
from app.theme.palette import Theme
from app.theme.tokens import Size
from app.words import transcript as words


class JumpButton(QAbstractButton):
    """Jump to latest."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setFixedSize(Size.CONTROL_LARGE, Size.CONTROL_LARGE)
        self.setAccessibleName(words.JUMP)
        self.setToolTip(words.JUMP)
        self.setCursor(Qt.CursorShape.ArrowCursor)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    @override
    def paintEvent(self, e: QPaintEvent) -> None:
        colors = self._theme.colors
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        focused = self.hasFocus()
        painter.setPen(QPen(QColor(colors.accent if focused else colors.border), 1 + focused))
        painter.setBrush(QColor(colors.hover if self.underMouse() else colors.raised))
        painter.drawEllipse(QRectF(self.rect()).adjusted(1, 1, -1, -1))
        glyph = QRectF(0, 0, GRID, GRID)
        glyph.moveCenter(QRectF(self.rect()).center())
        self._theme.icons.paint(painter, Icon.CHEVRON_DOWN, colors.secondary, glyph)
        painter.end()
