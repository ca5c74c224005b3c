"""What the reader looks for, and where the rows that are painted hold it. Main thread."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from app.viewmodels.find import Wanted, folded
from app.widgets.transcript.rows.flow import Range
from app.widgets.transcript.rows.row import TranscriptRow


class Hits:
    """What is wanted, and its places in rows: each row is searched once, not at every painting."""

    def __init__(self) -> None:
        self._wanted: Wanted | None = None
        self._known: WeakKeyDictionary[TranscriptRow, tuple[str, list[Range]]] = WeakKeyDictionary()

    @property
    def wanted(self) -> Wanted | None:
        """None while nothing is looked for."""
        return self._wanted

    @wanted.setter
    def wanted(self, wanted: Wanted | None) -> None:
        self._wanted = wanted
        self._known.clear()

    def within(self, row: TranscriptRow) -> Sequence[Range]:
        """In order."""
        if self._wanted is None:
            return ()
        text = row.text
        known = self._known.get(row)
        if known is None or known[0] != text:
            matches = self._wanted.in_read.finditer(folded(text))
            known = (text, [Range(match.start(), match.end()) for match in matches])
            self._known[row] = known
        return known[1]
