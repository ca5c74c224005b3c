"""Matches of the find text in the rows that are painted. Used on the main thread only."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from app.viewmodels.find import Wanted, folded
from app.widgets.transcript.rows.flow import Range
from app.widgets.transcript.rows.row import TranscriptRow


class Hits:
    """The find text, and a cache of its matches by row.

    A row is searched again only when its text has changed, not at every painting.
    """

    def __init__(self) -> None:
        self._wanted: Wanted | None = None
        # The text that was searched and its matches, by row.
        self._known: WeakKeyDictionary[TranscriptRow, tuple[str, list[Range]]] = WeakKeyDictionary()

    @property
    def wanted(self) -> Wanted | None:
        """The patterns of the find text; None while nothing is searched."""
        return self._wanted

    @wanted.setter
    def wanted(self, wanted: Wanted | None) -> None:
        self._wanted = wanted
        self._known.clear()

    def within(self, row: TranscriptRow) -> Sequence[Range]:
        """Return the matches in a row's text in order. Empty while nothing is searched."""
        if self._wanted is None:
            return ()
        text = row.text
        known = self._known.get(row)
        if known is None or known[0] != text:
            matches = self._wanted.in_read.finditer(folded(text))
            known = (text, [Range(match.start(), match.end()) for match in matches])
            self._known[row] = known
        return known[1]
