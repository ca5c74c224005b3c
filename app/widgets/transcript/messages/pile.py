"""The rows of one message, stacked vertically, with sizes and positions. Main thread only.

The heights are in a HeightTree. Changing a height takes O(log n) steps. Finding the row at a y
coordinate takes O(log n) steps, too.
"""

from __future__ import annotations

from PySide6.QtCore import QPointF

from app.viewmodels.heights import HeightTree
from app.widgets.transcript.messages.content import MessageRows, MessageShape
from app.widgets.transcript.rows.layout_cache import LayoutCache
from app.widgets.transcript.rows.row import TranscriptRow


class RowPile:
    """The rows of one message, stacked vertically, with the position and size of each row.

    The height of a row is an estimate until measure() is called for the row.
    """

    def __init__(self, cache: LayoutCache) -> None:
        self.rows: list[TranscriptRow] = []
        self.shape = MessageShape()
        self.width = 0  # width of the column in pixels
        self.num_settled = 0  # number of rows, from the top, that are measured at the current width
        self._cache = cache
        self._tree = HeightTree()
        # Y coordinate of the topmost change since the last call of take_changed_top(), or None.
        self._changed_top: int | None = None

    @property
    def height(self) -> int:
        return self._tree.total

    @property
    def is_settled(self) -> bool:
        return self.num_settled == len(self.rows)

    @property
    def text_width(self) -> int:
        """Maximum width of text that is not indented."""
        bubble = self.shape.bubble
        return max(1, self.width) if bubble is None else bubble.text_width(self.width)

    def gap_top(self, number: int) -> int:
        """Return the y coordinate of the gap above a row.

        If `number` is the number of rows, return the height of the pile.
        """
        return self._tree.top(number)

    def top(self, number: int) -> int:
        """Return the y coordinate of the top edge of a row, not of the gap above it."""
        return self._tree.top(number) + self.rows[number].gap

    def left(self, number: int) -> int:
        """Return the left edge of a row including its inset (indentation)."""
        bubble = self.shape.bubble
        if bubble is None or number >= bubble.num_rows:
            return 0
        return bubble.row_left(self.rows, self.width, is_rtl=self.rows[number].is_rtl)

    def corner(self, number: int) -> QPointF:
        """Return the top left corner of a row, excluding its inset (indentation)."""
        row = self.rows[number]
        return QPointF(self.left(number) + (0 if row.is_rtl else row.indent), self.top(number))

    def outer_width(self, number: int) -> int:
        """Return the width available to a row including its inset (indentation)."""
        bubble = self.shape.bubble
        if bubble is None or number >= bubble.num_rows:
            return self.width
        return bubble.text_width(self.width)

    def row_width(self, number: int) -> int:
        """Return the width available to a row, excluding its inset (indentation)."""
        return self.rows[number].width_within(self.outer_width(number))

    def at(self, y: float) -> int | None:
        """Return the index of the row nearest to y, or None if there are no rows."""
        return self._tree.find(int(max(0.0, y))) if self.rows else None

    def between(self, top: float, bottom: float) -> range:
        """Return the indices of the rows that overlap the range from y = top to y = bottom."""
        first, last = self.at(top), self.at(bottom)
        return range(0) if first is None or last is None else range(first, last + 1)

    def take_changed_top(self) -> int | None:
        """Return the y coordinate of the topmost change since the last call, or None."""
        top, self._changed_top = self._changed_top, None
        return top

    def resize(self, width: int) -> None:
        """Set the width of the column. Measured heights become estimates."""
        self.width = width
        self.num_settled = 0

    def clear(self) -> None:
        self.rows = []
        self.num_settled = 0
        self._tree = HeightTree()

    def replace(self, made: MessageRows) -> bool:
        """Replace the rows from index made.first to the end; return True if any row changed."""
        first, rows = made.first, made.rows
        self.shape = made.shape
        same = first
        for old, new in zip(self.rows[first:], rows, strict=False):
            if old is not new or new.width < 0 or self._tree[same] != new.gap + new.height:
                break
            same += 1
        # The row before the first new row may lose the caret: repaint that row too.
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
        """Measure a row if its height is not exact; return True if its height changed."""
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
        """Update num_settled to the number of measured rows at the top of the message."""
        while not self.is_settled:
            row = self.rows[self.num_settled]
            if row.width != self.row_width(self.num_settled) or row.is_stale:
                return
            self.num_settled += 1

    def unsettle_stale(self) -> bool:
        """Find the first stale row, and count it and all rows below it as not measured.

        A row is stale if it must be measured again, for example after a formula was typeset. Return
        False if no row is stale.
        """
        stale = [number for number, row in enumerate(self.rows) if row.is_stale]
        self.num_settled = min([self.num_settled, *stale])
        return bool(stale)

    def _changed_from(self, y: int) -> None:
        self._changed_top = y if self._changed_top is None else min(y, self._changed_top)
