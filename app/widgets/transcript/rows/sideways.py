"""Sideways scrolling of a row, with a thin thumb and a fade at each edge with more content beyond.

Used on the main thread only.
"""

from __future__ import annotations

from math import ceil

from PySide6.QtCore import QPoint, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QWheelEvent

from app.theme.tokens import Space
from app.widgets.transcript.rows.look import Look

_THUMB_HEIGHT = 4
_MIN_THUMB = 32
_WHEEL_UNITS = 3  # units of a wheel's angle delta that scroll one pixel


class SideScroll:
    """The sideways scroll position of one row. Lengths are in pixels."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._content = 0  # width of the content
        self._view = 0  # width of the visible part
        self.offset = 0  # pixels of the content that are scrolled out on the left

    def fit(self, content: int, view: int) -> None:
        """Set the widths of the content and of its visible part."""
        self._content, self._view = content, view
        self.offset = min(self.offset, self._limit)

    def scroll(self, pixels: int) -> bool:
        """Scroll by some pixels; a positive number shows content further right.

        Return False if the whole content is visible, so that there is nothing to scroll.
        """
        self.offset = max(0, min(self.offset + pixels, self._limit))
        return self._limit > 0

    def reveal(self, left: float, right: float) -> None:
        """Scroll as little as possible to show [left, right) of the content.

        If that is wider than the visible part, show its left end.
        """
        self.scroll(max(0, ceil(right) - self.offset - self._view))
        self.scroll(min(0, int(left) - self.offset))

    def paint_edges(self, painter: QPainter, ground: str, top: int, bottom: int) -> None:
        """Fade the content to the background colour at each edge with more content beyond."""
        look, area = self._look, QRectF(0, top, self._look.fade_width, bottom - top)
        for is_more, x, direction in (
            (self.offset > 0, look.fade_width, -1),
            (self.offset < self._limit, self._view - look.fade_width, 1),
        ):
            if is_more:
                painter.save()
                painter.translate(x, 0)
                painter.scale(direction, 1)
                painter.fillRect(area, look.fade(ground))
                painter.restore()

    def paint(self, painter: QPainter, bottom: int) -> None:
        """Paint the thumb just above y = bottom, unless the content fits."""
        if self._limit == 0:
            return
        track = self._view - 2 * Space.S
        length = max(_MIN_THUMB, track * self._view // self._content)
        x = Space.S + (track - length) * self.offset / self._limit
        y = bottom - _THUMB_HEIGHT - Space.XS + 1
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._look.colors.strong_line))
        radius = _THUMB_HEIGHT / 2
        painter.drawRoundedRect(QRectF(x, y, length, _THUMB_HEIGHT), radius, radius)

    @property
    def _limit(self) -> int:
        return max(0, self._content - self._view)


def wheel_pixels(event: QWheelEvent) -> QPoint:
    """Return the movement of the content by a wheel event, in pixels.

    Shift turns the movement of a vertical wheel sideways.
    """
    pixels = event.pixelDelta()
    if pixels.isNull():
        pixels = event.angleDelta() / _WHEEL_UNITS
    if event.modifiers() & Qt.KeyboardModifier.ShiftModifier and not pixels.x():
        return pixels.transposed()
    return pixels
