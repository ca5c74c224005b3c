"""The bubble of a user's message: size and painting. Main thread only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter

from app.theme.tokens import Radius, Space
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.row import TranscriptRow

SHARE = 0.78  # maximum width of a bubble, as a fraction of the column width
SHRINK_ROWS = 40  # a bubble with more rows has the maximum width
FOLD_LINES = 12  # maximum number of text lines in a folded bubble
# A folded bubble uses at most this number of characters, which is enough for FOLD_LINES lines.
FOLD_TEXT = 4_000


@dataclass(frozen=True, slots=True)
class Bubble:
    """The rounded rectangle behind the text of a user's message, at the right of the column.

    The bubble is as wide as its widest row. The maximum is SHARE of the column width.
    """

    look: Look
    num_rows: int  # number of rows inside the bubble

    def text_width(self, column: int) -> int:
        """Return the maximum width of the text in a bubble, for a given column width."""
        return max(1, int(column * SHARE) - 2 * self.look.px(Space.L))

    def row_left(self, rows: Sequence[TranscriptRow], column: int, *, is_rtl: bool) -> int:
        """Return the x coordinate of a row in the bubble."""
        pad = self.look.px(Space.L)
        if is_rtl:
            return column - pad - self.text_width(column)
        return int(column - self._width(rows, column)) + pad

    def paint(
        self, painter: QPainter, rows: Sequence[TranscriptRow], column: int, bottom: int
    ) -> None:
        """Paint the bubble. `bottom` is the y coordinate of the bottom of its last row."""
        if not self.num_rows:
            return
        width = self._width(rows, column)
        height = bottom + self.look.px(Space.M)
        radius = self.look.px(Radius.BUBBLE)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self.look.colors.user_bubble))
        box = QRectF(column - width, 0, width, height)
        painter.drawRoundedRect(box, radius, radius)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QColor(self.look.colors.fill_line))
        painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)

    def _width(self, rows: Sequence[TranscriptRow], column: int) -> int:
        natural = self.text_width(column)
        inside = rows[: min(self.num_rows, SHRINK_ROWS + 1)]
        if len(inside) <= SHRINK_ROWS and all(row.width >= 0 for row in inside):
            widest = max(row.indent + row.natural_width for row in inside)
            natural = min(natural, int(widest) + 1)
        return natural + 2 * self.look.px(Space.L)
