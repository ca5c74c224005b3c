"""Sideways scrolling of a row.

A thin scroll thumb shows the position. The content fades out at an edge if it continues beyond the
edge. Used on the main thread only.
"""

from __future__ import annotations

from math import ceil

from PySide6.QtCore import QPoint, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QWheelEvent

from app.theme.tokens import Space
from app.widgets.transcript.rows.look import Look

_THUMB_HEIGHT = 4
_MIN_THUMB = 32
_WHEEL_UNITS = 3  # units of QWheelEvent.angleDelta() for one pixel of scrolling


class SideScroll:
    """The sideways scroll position of one row. Lengths are in pixels."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._content = 0  # width of the content
        self._view = 0  # width of the visible part
        self.offset = 0  # number of pixels that are hidden at the left

    def fit(self, content: int, view: int) -> None:
        """Set the width of the content and the width of its visible part."""
        self._content, self._view = content, view
        self.offset = min(self.offset, self._limit)

    def scroll(self, pixels: int) -> bool:
        """Scroll by a number of pixels. A positive number shows content further to the right.

        Return False if the whole content is visible.
        """
        self.offset = max(0, min(self.offset + pixels, self._limit))
        return self._limit > 0

    def reveal(self, left: float, right: float) -> None:
        """Scroll as little as possible to show [left, right) of the content.

        If [left, right) is wider than the visible part, show its left end.
        """
        self.scroll(max(0, ceil(right) - self.offset - self._view))
        self.scroll(min(0, int(left) - self.offset))

    def paint_edges(self, painter: QPainter, ground: str, top: int, bottom: int) -> None:
        """Fade the content out at an edge if the content continues beyond this edge."""
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
        """Paint the scroll thumb just above `bottom`. If the content fits, paint nothing."""
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
    """Return the horizontal and vertical scroll distance of a wheel event, in pixels.

    While Shift is pressed, a vertical wheel movement becomes horizontal.
    """
    pixels = event.pixelDelta()
    if pixels.isNull():
        pixels = event.angleDelta() / _WHEEL_UNITS
    if event.modifiers() & Qt.KeyboardModifier.ShiftModifier and not pixels.x():
        return pixels.transposed()
    return pixels
