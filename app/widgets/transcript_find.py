"""Finds text in the messages on show, whether laid out or not. Main thread."""

from __future__ import annotations

from app.viewmodels.find import Found, Occurrence, find_pattern, neighbour, occurrences
from app.widgets.transcript_body import Kit
from app.widgets.transcript_places import Place, PlaceRange
from app.widgets.transcript_selection import FIRST_PLACE, LAST_PLACE, Caret, Selection
from app.widgets.transcript_stack import MessageStack


class Finder:
    """What is looked for, and which of its occurrences is shown.

    Occurrences are counted in what people and models wrote. What is seen may differ, an address that
    a link hides for one: then the nearest that is seen in the same message is shown.
    """

    def __init__(self, stack: MessageStack, kit: Kit) -> None:
        self._stack = stack
        self._kit = kit
        self._key = ""  # of the message with the current one: messages may come before it
        self._nth = 0
        self.selection: Selection | None = None  # of the current one

    def look_for(self, text: str) -> None:
        """Something else from now on; nothing if there are no words in it."""
        self._kit.wanted = find_pattern(text)
        self._key = ""
        self.selection = None

    def go(self, step: int, near: int) -> Found:
        """Choose the next one (1), the one before (-1), or the first from message near on (0)."""
        pattern = self._kit.wanted
        self.selection = None
        if pattern is None:
            return Found()
        found = occurrences(pattern, (layout.text for layout in self._stack.layouts))
        if not found:
            return Found()
        message = self._stack.index_of(self._key)
        current = None if message is None else Occurrence(message, self._nth)
        at = neighbour(found, current, step=step, near=near)
        one = found[at]
        self._key, self._nth = self._stack.layouts[one.message].item.key, one.nth
        self.selection = self._selection_of(one)
        return Found(at + 1, len(found))

    def _selection_of(self, one: Occurrence) -> Selection:
        seen = self._seen_in(one.message)
        if not seen:
            return Selection(Caret(one.message, FIRST_PLACE), Caret(one.message, FIRST_PLACE))
        places = seen[min(one.nth, len(seen) - 1)]
        return Selection(Caret(one.message, places.start), Caret(one.message, places.end))

    def _seen_in(self, message: int) -> list[PlaceRange]:
        pattern = self._kit.wanted
        assert pattern is not None
        return [
            PlaceRange(Place(ordinal, match.start()), Place(ordinal, match.end()))
            for ordinal, row in self._stack.opened(message).rows_between(FIRST_PLACE, LAST_PLACE)
            for match in pattern.finditer(row.text)
        ]
