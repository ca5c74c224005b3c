"""Marked words of a message, for the comparison of several answers. Main thread only."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QWidget

from app.widgets.transcript.layout.selection import LAST_PLACE
from app.widgets.transcript.layout.stack import MessageStack
from app.widgets.transcript.messages.places import BODY, Place
from app.widgets.transcript.rows.find_matches import FindMatches
from app.widgets.transcript.rows.ranges import Range
from app.widgets.transcript.rows.row import TranscriptRow


class WordMarks:
    """Marks words in the rows of one message. The rows paint them like matches of a search."""

    def __init__(self, stack: MessageStack, matches: FindMatches, canvas: QWidget) -> None:
        self._stack = stack
        self._matches = matches
        self._canvas = canvas
        self._key = ""  # key of the message with marks
        self.ranges: Sequence[Sequence[Range]] = ()  # marks of each row of texts(), or ()

    def texts(self, key: str) -> tuple[str, ...]:
        """Return the text of each row of a message, without its reasoning. Parse it if needed."""
        return tuple(row.text for row in self._rows(key))

    def mark(self, key: str, ranges: Sequence[Sequence[Range]]) -> None:
        """Mark these ranges, one sequence for each row of texts(). () removes all marks."""
        self._key, self.ranges = key, ranges
        self.restore()
        self._canvas.update()

    def restore(self) -> None:
        """Mark the ranges in the present rows, which replace those that had the same texts."""
        self._matches.marked.clear()
        if self.ranges:
            self._matches.marked.update(zip(self._rows(self._key), self.ranges, strict=False))

    def _rows(self, key: str) -> list[TranscriptRow]:
        index = self._stack.index_of(key)
        if index is None:
            return []
        places = self._stack.open_whole(index).places
        return [row for _, row in places.rows_between(Place(BODY, 0), LAST_PLACE)]
