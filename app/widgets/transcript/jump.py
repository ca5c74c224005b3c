"""The round button that jumps to the end of the transcript. Used on the main thread only."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QColor, QEnterEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QWidget
from typing_extensions import override

from app.theme.icons import GRID, Icon
from app.theme.palette import Theme
from app.theme.tokens import Size, Space
from app.words import transcript as words

# In a lower view, counted in heights of the button, it would cover the buttons of the only message.
_LEAST_HEIGHTS = 2


class JumpButton(QAbstractButton):
    """The round button "Jump to latest", at the bottom of the viewport.

    It is to the right of the text column. If the window is too narrow for that, it lies over the
    right edge of the column, where it covers the least text.
    """

    entered = Signal()  # emitted when the mouse pointer enters the button

    def __init__(self, theme: Theme, canvas: QWidget) -> None:
        super().__init__(canvas)
        self._theme = theme
        self._canvas = canvas
        self.setAccessibleName(words.JUMP)
        self.setToolTip(words.JUMP)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.ArrowCursor)

    def place(self, column_left: int, column_width: int) -> None:
        """Scale with the text, and move beside the text column or over its right edge."""
        size = self._theme.scaled(Size.CONTROL_LARGE)
        self.setFixedSize(size, size)
        left = column_left + column_width + Space.M
        if left + size > self._canvas.width():
            left = min(left, self._canvas.width()) - size
        self.move(left, self._canvas.height() - size - Space.XS)

    @property
    def has_room(self) -> bool:
        """True if the view is so high that the button leaves most of its right edge free."""
        return self._canvas.height() >= _LEAST_HEIGHTS * self.height()

    @override
    def enterEvent(self, event: QEnterEvent) -> None:
        self.entered.emit()
        super().enterEvent(event)

    @override
    def paintEvent(self, e: QPaintEvent) -> None:
        colors = self._theme.colors
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        focused = self.hasFocus()
        painter.setPen(QPen(QColor(colors.accent if focused else colors.border), 1 + focused))
        painter.setBrush(QColor(colors.hover if self.underMouse() else colors.raised))
        painter.drawEllipse(QRectF(self.rect()).adjusted(1, 1, -1, -1))
        glyph = QRectF(0, 0, self._theme.scaled(GRID), self._theme.scaled(GRID))
        glyph.moveCenter(QRectF(self.rect()).center())
        self._theme.icons.paint(painter, Icon.CHEVRON_DOWN, colors.secondary, glyph)
        painter.end()
