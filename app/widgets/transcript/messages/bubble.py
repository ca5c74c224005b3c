"""The bubble of a user's message: size and painting. Main thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter

from app.theme.tokens import Radius, Space
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.row import TranscriptRow

SHARE = 0.78  # maximum width of a bubble, as a share of the column
SHRINK_ROWS = 40  # a bubble with more rows has the maximum width
FOLD_LINES = 12  # lines of text in a folded bubble
FOLD_TEXT = 4_000  # characters; always enough to fill FOLD_LINES lines


@dataclass(frozen=True, slots=True)
class Bubble:
    """A rounded rectangle at the right of the column, behind the first rows of a message.

    The bubble is as wide as its widest row needs, but at most SHARE of the column.
    """

    look: Look
    num_rows: int  # rows inside the bubble

    def text_width(self, column: int) -> int:
        """Return the maximum width of text in a bubble, in a column of the given width."""
        return max(1, int(column * SHARE) - 2 * self.look.px(Space.L))

    def row_left(self, rows: Sequence[TranscriptRow], column: int, *, is_rtl: bool) -> int:
        """Return the x of a row in the bubble."""
        pad = self.look.px(Space.L)
        if is_rtl:
            return column - pad - self.text_width(column)
        return int(column - self._width(rows, column)) + pad

    def paint(
        self, painter: QPainter, rows: Sequence[TranscriptRow], column: int, bottom: int
    ) -> None:
        """Paint the bubble; bottom is the y at which its last row ends."""
        if not self.num_rows:
            return
        width = self._width(rows, column)
        height = bottom + self.look.px(Space.M)
        radius = self.look.px(Radius.BUBBLE)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self.look.colors.user_bubble))
        painter.drawRoundedRect(QRectF(column - width, 0, width, height), radius, radius)

    def _width(self, rows: Sequence[TranscriptRow], column: int) -> int:
        natural = self.text_width(column)
        inside = rows[: min(self.num_rows, SHRINK_ROWS + 1)]
        if len(inside) <= SHRINK_ROWS and all(row.width >= 0 for row in inside):
            widest = max(row.indent + row.natural_width for row in inside)
            natural = min(natural, int(widest) + 1)
        return natural + 2 * self.look.px(Space.L)
