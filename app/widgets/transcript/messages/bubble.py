"""The bubble of a user's message: the ground under its text. Main thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter

from app.theme.tokens import Radius, Space
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.row import TranscriptRow

SHARE = 0.78  # of the column that a bubble may fill
SHRINK_ROWS = 40  # bubbles with more rows are as wide as allowed
FOLD_LINES = 12
FOLD_TEXT = 4_000  # characters that surely fill the lines of a folded bubble


@dataclass(frozen=True, slots=True)
class Bubble:
    """A rounded rectangle at the right of the column, around the first rows of a message.

    A bubble is as wide as its widest row, and SHARE of the column at most.
    """

    look: Look
    num_rows: int  # rows inside the bubble

    def text_width(self, column: int) -> int:
        """Return the width of the text in the widest bubble that a column allows."""
        return max(1, int(column * SHARE) - 2 * self.look.px(Space.L))

    def row_left(self, rows: Sequence[TranscriptRow], column: int, *, is_rtl: bool) -> int:
        """Return the x of a row of the bubble."""
        pad = self.look.px(Space.L)
        if is_rtl:
            return column - pad - self.text_width(column)
        return int(column - self._width(rows, column)) + pad

    def paint(
        self, painter: QPainter, rows: Sequence[TranscriptRow], column: int, bottom: int
    ) -> None:
        """Paint the bubble around rows that end at bottom."""
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
