"""What the reader looks for, and where the rows that are painted hold it. Main thread."""

from __future__ import annotations

import re
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from app.widgets.transcript_flow import Range
from app.widgets.transcript_rows import Row


class Hits:
    """A pattern, and its places in rows: each row is searched once, not at every painting."""

    def __init__(self) -> None:
        self._pattern: re.Pattern[str] | None = None
        self._known: WeakKeyDictionary[Row, tuple[str, list[Range]]] = WeakKeyDictionary()

    @property
    def pattern(self) -> re.Pattern[str] | None:
        """None while nothing is looked for."""
        return self._pattern

    @pattern.setter
    def pattern(self, pattern: re.Pattern[str] | None) -> None:
        self._pattern = pattern
        self._known.clear()

    def within(self, row: Row) -> Sequence[Range]:
        """In order."""
        if self._pattern is None:
            return ()
        text = row.text
        known = self._known.get(row)
        if known is None or known[0] != text:
            matches = self._pattern.finditer(text)
            known = (text, [Range(match.start(), match.end()) for match in matches])
            self._known[row] = known
        return known[1]
