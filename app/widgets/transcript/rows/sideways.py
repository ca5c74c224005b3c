"""Sideways scrolling inside a row, with a thin thumb; what goes on beyond an edge fades there. Main thread."""

from __future__ import annotations

from math import ceil

from PySide6.QtCore import QPoint, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QWheelEvent

from app.theme.tokens import Space
from app.widgets.transcript.rows.look import Look

_THUMB_HEIGHT = 4
_MIN_THUMB = 32
_WHEEL_UNITS = 3  # of an angle delta to a pixel


class SideScroll:
    """How far a row's content is scrolled to the left."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._content = 0
        self._view = 0
        self.offset = 0

    def fit(self, content: int, view: int) -> None:
        """Say how wide content and view are."""
        self._content, self._view = content, view
        self.offset = min(self.offset, self._limit)

    def scroll(self, pixels: int) -> bool:
        """Scroll by so much; False if everything is visible anyway."""
        self.offset = max(0, min(self.offset + pixels, self._limit))
        return self._limit > 0

    def reveal(self, left: float, right: float) -> None:
        """Scroll the least that shows this part of the content, its left end if it is too wide."""
        self.scroll(max(0, ceil(right) - self.offset - self._view))
        self.scroll(min(0, int(left) - self.offset))

    def paint_edges(self, painter: QPainter, ground: str, top: int, bottom: int) -> None:
        """Let what lies on that ground fade where more of it is beyond the edge."""
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
        """Paint the thumb above bottom if there is anything to scroll."""
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
    """Return how far the content shall move; Shift turns the wheel sideways."""
    pixels = event.pixelDelta()
    if pixels.isNull():
        pixels = event.angleDelta() / _WHEEL_UNITS
    if event.modifiers() & Qt.KeyboardModifier.ShiftModifier and not pixels.x():
        return pixels.transposed()
    return pixels
