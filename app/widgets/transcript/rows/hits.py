"""Find the matches of the search text in painted rows. Used on the main thread only."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from app.viewmodels.find import Wanted, folded
from app.widgets.transcript.rows.flow import Range
from app.widgets.transcript.rows.row import TranscriptRow


class Hits:
    """The text that the user searches for, and a cache of the matches in each row.

    A row is not searched again each time it is painted, but only if its text has changed.
    """

    def __init__(self) -> None:
        self._wanted: Wanted | None = None
        # Key: row. Value: the text that was searched, and the matches in this text.
        self._known: WeakKeyDictionary[TranscriptRow, tuple[str, list[Range]]] = WeakKeyDictionary()

    @property
    def wanted(self) -> Wanted | None:
        """The patterns compiled from the search text. None if no search is active."""
        return self._wanted

    @wanted.setter
    def wanted(self, wanted: Wanted | None) -> None:
        self._wanted = wanted
        self._known.clear()

    def within(self, row: TranscriptRow) -> Sequence[Range]:
        """Return the matches in the text of a row, in order. Empty if no search is active."""
        if self._wanted is None:
            return ()
        text = row.text
        known = self._known.get(row)
        if known is None or known[0] != text:
            matches = self._wanted.in_read.finditer(folded(text))
            known = (text, [Range(match.start(), match.end()) for match in matches])
            self._known[row] = known
        return known[1]
