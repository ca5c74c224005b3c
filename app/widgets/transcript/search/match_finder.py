"""Find text in all messages of the transcript, including messages that are not parsed yet.

Used on the main thread only. `FindController` calls `MatchFinder` for the find bar, which shows
"3 of 12" and steps through the occurrences.

A search covers the text that the user reads: "the quick" is found in `the **quick**`, and the
addresses of links are not searched. The displayed text of a message exists only after the message
is parsed, which takes about 0.5 ms. A message that is not parsed yet is searched in its Markdown
source instead, with a pattern that allows Markdown marks between words. The number of occurrences
in such a message is an estimate. It becomes exact when the message is parsed: by idle work, or by
`MatchFinder`, which lays out a message before it shows one of its occurrences.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from app.viewmodels.find import ROW_END, Counts, FindPosition, Occurrence, compile_query
from app.widgets.transcript.layout.selection import FIRST_PLACE, LAST_PLACE, Caret, Selection
from app.widgets.transcript.layout.stack import MessageStack
from app.widgets.transcript.messages.message import MessageLayout
from app.widgets.transcript.messages.places import Place
from app.widgets.transcript.rows.find_matches import FindMatches
from app.widgets.transcript.rows.ranges import Range
from app.widgets.transcript.rows.row import TranscriptRow
from app.widgets.transcript.search.marks import Marks

# Maximum number of messages that one call of go() lays out to find an occurrence.
_TRIES = 20


@dataclass(frozen=True, slots=True)
class _TextTop:
    """The y coordinate of one character of the searched text.

    The y coordinates of other characters are interpolated.
    """

    offset: int  # index of the character in the searched text
    y: int  # pixels below the top of the message


class MatchFinder:
    """The searched text, its occurrences in all messages, and the current occurrence.

    The current occurrence is stored as the key of its message and an index within the message,
    which stay valid if messages are inserted above.
    """

    def __init__(self, stack: MessageStack, matches: FindMatches) -> None:
        self._stack = stack
        self._matches = matches
        self._counts = Counts()  # number of occurrences in each message
        # Index of the message at which the search starts.
        self._near: int = 0
        self._key = ""  # key of the message with the current occurrence; "" for none
        self._nth = 0  # index of the current occurrence in its message
        self._row: TranscriptRow | None = None  # row with the current occurrence
        self._match: Range | None = None  # range of the current occurrence in the text of _row
        # The current occurrence as a selection; None if there is no current occurrence.
        self.selection: Selection | None = None

    @property
    def is_looking(self) -> bool:
        """True while a search is in progress."""
        return self._matches.query is not None

    def look_for(self, text: str, near: int) -> None:
        """Set the text to search for. A text without words ends the search.

        A new search starts at the message with index `near`. If the text changes during a search,
        `near` is ignored. The search for the new text then starts at the message of the last next
        or previous step. If there was no such step, the search starts where the old one started.
        """
        if not self.is_looking:
            self._near = near
        self._matches.query = compile_query(text)
        self._counts = Counts(self._matches.query)
        self._key = ""

    def enter(self, key: str) -> bool:
        """Make the first occurrence in a message that begins a word the current one.

        If none begins a word, the first one is. Return False if the message has no occurrence.
        """
        message = self._stack.index_of(key)
        query = self._matches.query
        if message is None or query is None:
            return False
        text = self._stack.open_whole(message).search_text
        places = [match.start() for match in query.pattern(text).finditer(text.text)]
        starts = (nth for nth, at in enumerate(places) if _begins_word(text.text, at))
        self._near, self._key, self._nth = message, key, next(starts, 0)
        return bool(places)

    def go(self, step: int) -> FindPosition:
        """Choose the next occurrence (step 1), the previous one (-1) or the current one (0).

        Without a current one, choose the first from where the search starts. Lay out the message of
        the occurrence, and set `selection` to the occurrence. If there is no occurrence,
        `selection` is None.
        """
        self.selection = self._row = self._match = None
        one = self._choose(step)
        if one is None:
            return FindPosition()
        self._key, self._nth = self._stack.items[one.message].key, one.nth
        if step:
            self._near = one.message
        self.selection = self._selection_of(one)
        return self.recount()

    def recount(self) -> FindPosition:
        """Count all occurrences again. Return the number of the current one and the total."""
        self._count()
        if not self._counts.total:
            return FindPosition()
        current = self._current()
        number = None if current is None else self._counts.number(current)
        if number is None:
            number = self._counts.neighbour(None, step=0, near=self._near)
        return FindPosition(number + 1, self._counts.total)

    def marks(self, height: int) -> Marks:
        """Return the marks for a scroll bar of the given height.

        The marks are computed from the last count, and no message is laid out for them.
        """
        scale = height / max(1, self._stack.total)
        tops = self._stack.tops()
        ys: set[int] = set()
        for message, layout in enumerate(self._stack.layouts):
            if not self._counts.within(message):
                continue
            top, end = tops[message] * scale, tops[message + 1] * scale
            if end - top < 2:
                ys.add(int((top + end) / 2))
            else:
                ys.update(int(top + y * scale) for y in self._ys(layout, end - top))
        one = self._current()
        if one is None or self._counts.number(one) is None:
            return Marks(tuple(sorted(ys)))
        y = self._y_of(self._stack.layouts[one.message], one.nth)
        return Marks(tuple(sorted(ys)), int((tops[one.message] + y) * scale))

    def reveal(self) -> None:
        """Scroll the row of the current occurrence sideways, so that the occurrence is visible.

        Call this after the row has been laid out.
        """
        if self._row is not None and self._match is not None:
            self._row.reveal(self._match)

    def _count(self) -> None:
        self._counts.count([layout.search_text for layout in self._stack.layouts])

    def _current(self) -> Occurrence | None:
        message = self._stack.index_of(self._key)
        return None if message is None else Occurrence(message, self._nth)

    def _choose(self, step: int) -> Occurrence | None:
        """Return the occurrence to show, or None if there is none.

        An occurrence in an unparsed message can disappear when the message is parsed. Therefore the
        message of the chosen occurrence is parsed, and the choice is repeated until the occurrence
        is in a parsed message. Parse at most _TRIES messages.
        """
        current, one = self._current(), None
        for _ in range(_TRIES):
            self._count()
            if not self._counts.total:
                return None
            number = self._counts.neighbour(current, step=step, near=self._near)
            one = self._counts.occurrence(number)
            if self._stack.layouts[one.message].search_text.is_read:
                break
            self._stack.open_whole(one.message)
        return one

    def _selection_of(self, one: Occurrence) -> Selection:
        places = self._stack.open_whole(one.message).places
        rows = places.rows_between(FIRST_PLACE, LAST_PLACE)
        seen = [(at, row, match) for at, row in rows for match in self._matches.within(row)]
        if not seen:
            start = Caret(one.message, FIRST_PLACE)
            return Selection(start, start)
        ordinal, self._row, self._match = seen[min(one.nth, len(seen) - 1)]
        start, end = Place(ordinal, self._match.start), Place(ordinal, self._match.end)
        return Selection(Caret(one.message, start), Caret(one.message, end))

    def _ys(self, layout: MessageLayout, pixels: float) -> Iterator[float]:
        """Yield approximate y coordinates of the occurrences in a message, at most one per pixel.

        After each match, the search skips the text that corresponds to one pixel of the scroll bar.
        The number of y coordinates is therefore limited by the height of the bar, however long the
        message is.
        """
        assert self._matches.query is not None
        search_text = layout.search_text
        text, pattern = search_text.text, self._matches.query.pattern(search_text)
        tops, step = _text_tops(layout), max(1, int(len(text) / pixels))
        match = pattern.search(text)
        while match is not None:
            yield _y_at(tops, match.start())
            match = pattern.search(text, max(match.end(), match.start() + step))

    def _y_of(self, layout: MessageLayout, nth: int) -> float:
        assert self._matches.query is not None
        search_text = layout.search_text
        matches = self._matches.query.pattern(search_text).finditer(search_text.text)
        match = next(islice(matches, nth, None), None)
        return 0 if match is None else _y_at(_text_tops(layout), match.start())


def _begins_word(text: str, at: int) -> bool:
    """Return True if the search of all chats can find a word here (match_pattern in its store)."""
    before = text[at - 1 : at]
    return not (before.isascii() and before.isalnum())


def _text_tops(layout: MessageLayout) -> list[_TextTop]:
    """Return the characters with a known y coordinate.

    These are the start and the end of each row. If the message is not parsed, they are the start
    and the end of the message.
    """
    search_text = layout.search_text
    tops = [_TextTop(0, 0)]
    if search_text.is_read:
        offset = 0
        for y, row in layout.places.text_rows():
            tops += [_TextTop(offset, y), _TextTop(offset + len(row.text), y + row.height)]
            offset += len(row.text) + len(ROW_END)
    return [*tops, _TextTop(len(search_text.text), layout.height)]


def _y_at(tops: Sequence[_TextTop], offset: int) -> float:
    """Interpolate the y coordinate of a character between the nearest known characters."""
    after = min(max(1, bisect_left(tops, offset, key=lambda top: top.offset)), len(tops) - 1)
    first, last = tops[after - 1], tops[after]
    share = (offset - first.offset) / max(1, last.offset - first.offset)
    return first.y + (last.y - first.y) * share
