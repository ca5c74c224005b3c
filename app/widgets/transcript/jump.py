"""The round button that jumps to the end of the transcript, and the area around the button.

Used on the main thread only.
"""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QColor, QEnterEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QWidget
from typing_extensions import override

from app.theme.icons import GRID, Icon
from app.theme.palette import Theme
from app.theme.tokens import Size, Space
from app.words import transcript as words


class JumpButton(QAbstractButton):
    """The round button "Jump to latest"."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.fit()
        self.setAccessibleName(words.JUMP)
        self.setToolTip(words.JUMP)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    def fit(self) -> None:
        """Scale the button with the text."""
        size = self._theme.scaled(Size.CONTROL_LARGE)
        self.setFixedSize(size, size)

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


class JumpPlace(QWidget):
    """The area that contains the jump button, at the bottom of the viewport.

    The area is to the right of the text column. If the window is too narrow for that, the area is
    an opaque strip over the bottom of the text. Without the strip, the button would cover parts of
    words. The strip accepts mouse clicks, so that they do not reach links behind the strip.
    """

    entered = Signal()  # emitted when the mouse pointer enters this area

    def __init__(self, theme: Theme, canvas: QWidget) -> None:
        super().__init__(canvas)
        self._theme = theme
        self._canvas = canvas
        self._is_strip = False
        self.setCursor(Qt.CursorShape.ArrowCursor)
        self.button = JumpButton(theme, self)

    @property
    def covered(self) -> int:
        """Height in pixels of the strip that covers the canvas; 0 if no strip is shown."""
        return self.height() if self._is_strip and self.isVisible() else 0

    def place(self, column_left: int, column_width: int) -> None:
        """Move to the right of the text column, or become a strip if there is too little space."""
        right, canvas = column_left + column_width, self._canvas.rect()
        self.button.fit()
        size = self.button.width()
        height = size + Space.S
        middle = right + Space.M + size // 2
        self._is_strip = middle + size // 2 > canvas.width()
        if self._is_strip:
            middle, left = column_left + column_width // 2, 0
        else:
            left = right
        self.setGeometry(left, canvas.height() - height, canvas.width() - left, height)
        self.button.move(middle - left - size // 2, Space.XS)

    @override
    def enterEvent(self, event: QEnterEvent) -> None:
        self.entered.emit()
        super().enterEvent(event)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        event.accept()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        if self._is_strip:
            QPainter(self).fillRect(event.rect(), QColor(self._theme.colors.canvas))
