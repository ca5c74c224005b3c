"""Rows on top of each other: how high each is, which are measured, what of the picture has changed."""

from __future__ import annotations

from collections.abc import Callable

from app.viewmodels.heights import HeightTree
from app.widgets.transcript.rows.row import LayoutCache, TranscriptRow

# The width that a row may fill, by its number.
Widths = Callable[[int], int]


class RowPile:
    """The rows of one message. Heights of rows that were never measured are estimates."""

    def __init__(self, cache: LayoutCache) -> None:
        self.rows: list[TranscriptRow] = []
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

    def start(self, number: int) -> int:
        """The y of the gap above a row; that of the end after the last one."""
        return self._tree.top(number)

    def top(self, number: int) -> int:
        """The y of a row."""
        return self._tree.top(number) + self.rows[number].gap

    def at(self, y: float) -> int | None:
        """The row nearest to a height, None if there are none."""
        return self._tree.find(int(max(0.0, y))) if self.rows else None

    def take_changed_top(self) -> int | None:
        """Return the y from which on the picture has changed since the last call."""
        top, self._changed_top = self._changed_top, None
        return top

    def clear(self) -> None:
        self.rows = []
        self.num_settled = 0
        self._tree = HeightTree()

    def replace(self, first: int, rows: list[TranscriptRow], widths: Widths) -> bool:
        """Have these rows from the first on; True if there is any that was not."""
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
                row.height = row.estimate(widths(number))
            self._tree.append_height(row.gap + row.height)
        self.num_settled = min(self.num_settled, same)
        return changed

    def measure(self, number: int, width: int) -> bool:
        """Make one row exact; True if its height was another."""
        row = self.rows[number]
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

    def count_settled(self, widths: Widths) -> None:
        """Some rows have been measured."""
        while not self.is_settled:
            row = self.rows[self.num_settled]
            if row.width != widths(self.num_settled) or row.is_stale:
                return
            self.num_settled += 1

    def unsettle_stale(self) -> bool:
        """Some rows may have become others; False if none has."""
        stale = [number for number, row in enumerate(self.rows) if row.is_stale]
        self.num_settled = min([self.num_settled, *stale])
        return bool(stale)

    def _changed_from(self, y: int) -> None:
        self._changed_top = y if self._changed_top is None else min(y, self._changed_top)
