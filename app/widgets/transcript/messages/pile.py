"""The rows of one message on top of each other: sizes and positions. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QPointF

from app.viewmodels.heights import HeightTree
from app.widgets.transcript.messages.content import MessageRows, MessageShape
from app.widgets.transcript.rows.row import LayoutCache, TranscriptRow


class RowPile:
    """Rows in a column of some width, each with its x, y, width and height.

    Heights of rows that were never measured are estimates.
    """

    def __init__(self, cache: LayoutCache) -> None:
        self.rows: list[TranscriptRow] = []
        self.shape = MessageShape()
        self.width = 0  # of the column
        self.num_settled = 0  # rows before this are measured
        self._cache = cache
        self._tree = HeightTree()
        self._changed_top: int | None = None

    @property
    def height(self) -> int:
        return self._tree.total

    @property
    def is_settled(self) -> bool:
        return self.num_settled == len(self.rows)

    def gap_top(self, number: int) -> int:
        """Return the y of the gap above a row, or of the end of the last row."""
        return self._tree.top(number)

    def top(self, number: int) -> int:
        """Return the y of a row."""
        return self._tree.top(number) + self.rows[number].gap

    def left(self, number: int) -> int:
        """Return the x of a row and its inset."""
        bubble = self.shape.bubble
        if bubble is None or number >= bubble.num_rows:
            return 0
        return bubble.row_left(self.rows, self.width, is_rtl=self.rows[number].is_rtl)

    def corner(self, number: int) -> QPointF:
        """Return the top left of a row, beside its inset."""
        row = self.rows[number]
        return QPointF(self.left(number) + (0 if row.is_rtl else row.indent), self.top(number))

    def outer_width(self, number: int) -> int:
        """Return the width that a row and its inset fill."""
        bubble = self.shape.bubble
        if bubble is None or number >= bubble.num_rows:
            return self.width
        return bubble.text_width(self.width)

    def row_width(self, number: int) -> int:
        """Return the width that a row fills beside its inset."""
        return self.rows[number].width_within(self.outer_width(number))

    def at(self, y: float) -> int | None:
        """Return the row nearest to a height, None if there are no rows."""
        return self._tree.find(int(max(0.0, y))) if self.rows else None

    def take_changed_top(self) -> int | None:
        """Return the y from which on the picture has changed since the last call."""
        top, self._changed_top = self._changed_top, None
        return top

    def resize(self, width: int) -> None:
        """Set the width of the column. Heights stay as estimates."""
        self.width = width
        self.num_settled = 0

    def clear(self) -> None:
        self.rows = []
        self.num_settled = 0
        self._tree = HeightTree()

    def replace(self, made: MessageRows) -> bool:
        """Replace the rows from made.first on; return True if a row differs."""
        first, rows = made.first, made.rows
        self.shape = made.shape
        same = first
        for old, new in zip(self.rows[first:], rows, strict=False):
            if old is not new or new.width < 0 or self._tree[same] != new.gap + new.height:
                break
            same += 1
        # The row before the first new one loses the caret.
        self._changed_from(self._tree.top(max(0, min(same, len(self._tree)) - 1)))
        changed = same < first + len(rows) or first + len(rows) < len(self.rows)
        self.rows[first:] = rows
        self._tree.truncate(same)
        for number in range(same, len(self.rows)):
            row = self.rows[number]
            if row.width < 0 and row.height == 0:
                row.height = row.estimate(self.row_width(number))
            self._tree.append_height(row.gap + row.height)
        self.num_settled = min(self.num_settled, same)
        return changed

    def measure(self, number: int) -> bool:
        """Make the height of a row exact; return True if it was another."""
        row, width = self.rows[number], self.row_width(number)
        if row.width != width or row.is_stale:
            row.height = row.measure(width)
            row.width = width
            self._cache.touch(row)
        before = self._tree[number]
        self._tree.set(number, row.gap + row.height)
        if before != row.gap + row.height:
            self._changed_from(self._tree.top(number))
            return True
        return False

    def count_settled(self) -> None:
        """Advance num_settled over rows that are measured."""
        while not self.is_settled:
            row = self.rows[self.num_settled]
            if row.width != self.row_width(self.num_settled) or row.is_stale:
                return
            self.num_settled += 1

    def unsettle_stale(self) -> bool:
        """Move num_settled back to the first stale row; return False if no row is stale."""
        stale = [number for number, row in enumerate(self.rows) if row.is_stale]
        self.num_settled = min([self.num_settled, *stale])
        return bool(stale)

    def _changed_from(self, y: int) -> None:
        self._changed_top = y if self._changed_top is None else min(y, self._changed_top)
