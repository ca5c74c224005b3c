"""Finds text in the messages on show, whether laid out or not. Main thread."""

from __future__ import annotations

from app.viewmodels.find import Counts, Found, Occurrence, find_pattern
from app.widgets.transcript_flow import Range
from app.widgets.transcript_hits import Hits
from app.widgets.transcript_places import BODY, Place
from app.widgets.transcript_rows import Row
from app.widgets.transcript_selection import LAST_PLACE, Caret, Selection
from app.widgets.transcript_stack import MessageStack

_FIRST = Place(BODY, 0)  # after what was thought


class Finder:
    """What is looked for, and which of its occurrences is shown.

    Occurrences are counted in what people and models wrote. What is seen may differ, an address that
    a link hides for one: then another that is seen in the same message is shown.
    """

    def __init__(self, stack: MessageStack, hits: Hits) -> None:
        self._stack = stack
        self._hits = hits
        self._counts = Counts()
        self._near: int = 0  # the message where looking begins
        self._key = ""  # of the message with the current one: messages may come before it
        self._nth = 0
        self._row: Row | None = None  # that holds the current one
        self._hit: Range | None = None  # where, in its text
        self.selection: Selection | None = None  # of the current one

    def look_for(self, text: str, near: int) -> None:
        """Something else from now on; nothing if there are no words in it.

        It begins where it last was gone on from, else at the message near.
        """
        if self._hits.pattern is None:
            self._near = near
        self._hits.pattern = find_pattern(text)
        self._counts = Counts(self._hits.pattern)
        self._key = ""

    def go(self, step: int) -> Found:
        """Choose the next one (1), the one before (-1), or the first there is (0)."""
        self.selection = self._row = self._hit = None
        layouts = self._stack.layouts
        self._counts.count([layout.text for layout in layouts])
        total = self._counts.total
        if not total:
            return Found()
        message = self._stack.index_of(self._key)
        current = None if message is None else Occurrence(message, self._nth)
        number = self._counts.neighbour(current, step=step, near=self._near)
        one = self._counts.occurrence(number)
        self._key, self._nth = layouts[one.message].item.key, one.nth
        if step:
            self._near = one.message
        self.selection = self._selection_of(one)
        return Found(number + 1, total)

    def reveal(self) -> None:
        """Scroll the current one's row sideways to it; the row is laid out by now."""
        if self._row is not None and self._hit is not None:
            self._row.reveal(self._hit)

    def _selection_of(self, one: Occurrence) -> Selection:
        rows = self._stack.open_whole(one.message).rows_between(_FIRST, LAST_PLACE)
        seen = [(at, row, hit) for at, row in rows for hit in self._hits.within(row)]
        if not seen:
            start = Caret(one.message, _FIRST)
            return Selection(start, start)
        ordinal, self._row, self._hit = seen[min(one.nth, len(seen) - 1)]
        start, end = Place(ordinal, self._hit.start), Place(ordinal, self._hit.end)
        return Selection(Caret(one.message, start), Caret(one.message, end))
