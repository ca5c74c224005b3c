"""The cache of line layouts: it limits the memory that the rows take. Main thread only."""

from __future__ import annotations

from collections import OrderedDict

from app.widgets.transcript.rows.row import TranscriptRow

MAX_LAYOUTS = 150  # maximum number of rows in the layout cache


class LayoutCache:
    """The rows that have a line layout, least recently used first.

    If there are more than `size` rows, the cache evicts the first row and drops its line layout.
    """

    def __init__(self, size: int = MAX_LAYOUTS) -> None:
        self._size = size
        self._rows: OrderedDict[TranscriptRow, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._rows)

    def touch(self, row: TranscriptRow) -> None:
        self._rows[row] = None
        self._rows.move_to_end(row)
        if len(self._rows) > self._size:
            self._rows.popitem(last=False)[0].release()

    def clear(self) -> None:
        self._rows.clear()
