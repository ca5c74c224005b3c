"""Marked words of a message, for the comparison of several answers. Main thread only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.widgets.transcript.layout.selection import LAST_PLACE
from app.widgets.transcript.layout.stack import MessageStack
from app.widgets.transcript.messages.places import BODY, Place
from app.widgets.transcript.rows.find_matches import FindMatches
from app.widgets.transcript.rows.ranges import Range
from app.widgets.transcript.rows.row import TranscriptRow


@dataclass(frozen=True, slots=True)
class WordMarks:
    """Marks words in the rows of a message. The rows paint them like matches of a search."""

    stack: MessageStack
    matches: FindMatches

    def texts(self, key: str) -> tuple[str, ...]:
        """Return the text of each row of a message, without its reasoning. Parse it if needed."""
        return tuple(row.text for row in self._rows(key))

    def mark(self, key: str, marks: Sequence[Sequence[Range]]) -> None:
        """Mark these ranges, one sequence for each row of texts(). () removes all marks."""
        self.matches.marked.clear()
        if marks:
            self.matches.marked.update(zip(self._rows(key), marks, strict=True))

    def _rows(self, key: str) -> list[TranscriptRow]:
        index = self.stack.index_of(key)
        if index is None:
            return []
        places = self.stack.open_whole(index).places
        return [row for _, row in places.rows_between(Place(BODY, 0), LAST_PLACE)]
