"""Ranges to underline in painted rows: matches of the search text, or marked words. Main thread."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from app.viewmodels.find import Query, case_folded
from app.widgets.transcript.rows.ranges import Range
from app.widgets.transcript.rows.row import TranscriptRow


class FindMatches:
    """The text that the user searches for, and a cache of the matches in each row.

    When a row is painted again, it is searched again only if its text has changed. Without a
    search, the marked words of the rows take the place of matches.
    """

    def __init__(self) -> None:
        self._query: Query | None = None
        # Key: row. Value: the text that was searched, and the matches in this text.
        self._known: WeakKeyDictionary[TranscriptRow, tuple[str, list[Range]]] = WeakKeyDictionary()
        self.marked: WeakKeyDictionary[TranscriptRow, Sequence[Range]] = WeakKeyDictionary()

    @property
    def query(self) -> Query | None:
        """The patterns compiled from the search text. None if no search is active."""
        return self._query

    @query.setter
    def query(self, query: Query | None) -> None:
        self._query = query
        self._known.clear()

    def within(self, row: TranscriptRow) -> Sequence[Range]:
        """Return the matches in the text of a row, in order; without a search, its marked words."""
        if self._query is None:
            return self.marked.get(row, ())
        text = row.text
        known = self._known.get(row)
        if known is None or known[0] != text:
            matches = self._query.in_read.finditer(case_folded(text))
            known = (text, [Range(match.start(), match.end()) for match in matches])
            self._known[row] = known
        return known[1]
