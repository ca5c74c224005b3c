"""Finds text in the messages on show, whether laid out or not. Main thread."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from app.viewmodels.find import ROW_END, Counts, FindPosition, Occurrence, wanted
from app.widgets.transcript.layout.selection import FIRST_PLACE, LAST_PLACE, Caret, Selection
from app.widgets.transcript.layout.stack import MessageStack
from app.widgets.transcript.messages.message import MessageLayout
from app.widgets.transcript.messages.places import Place
from app.widgets.transcript.rows.flow import Range
from app.widgets.transcript.rows.hits import Hits
from app.widgets.transcript.rows.row import TranscriptRow
from app.widgets.transcript.search.marks import Marks

_TRIES = 20  # messages laid out in search of one that is read as its Markdown promises


@dataclass(frozen=True, slots=True)
class _TextTop:
    """A character of the text that is looked through, and its y in the message."""

    offset: int
    y: int


class Finder:
    """What is looked for, and which of its occurrences is shown.

    Looked through is what people read: `the **quick**` has "the quick", and no address behind a link.
    To know that of a message takes its parsing, half a millisecond: so where nothing has been laid out
    yet (idle time comes to all) its Markdown is looked through instead, and a message is laid out
    before one of its occurrences is shown. What is counted of it then is what is marked in it.
    """

    def __init__(self, stack: MessageStack, hits: Hits) -> None:
        self._stack = stack
        self._hits = hits
        self._counts = Counts()
        self._near: int = 0  # the message where looking begins
        self._key = ""  # of the message with the current one: messages may come before it
        self._nth = 0
        self._row: TranscriptRow | None = None  # that holds the current one
        self._hit: Range | None = None  # where, in its text
        self.selection: Selection | None = None  # of the current one

    @property
    def is_looking(self) -> bool:
        return self._hits.wanted is not None

    def look_for(self, text: str, near: int) -> None:
        """Something else from now on; nothing if there are no words in it.

        It begins where it last was gone on from, else at the message near.
        """
        if not self.is_looking:
            self._near = near
        self._hits.wanted = wanted(text)
        self._counts = Counts(self._hits.wanted)
        self._key = ""

    def go(self, step: int) -> FindPosition:
        """Choose the next one (1), the one before (-1), or the first there is (0)."""
        self.selection = self._row = self._hit = None
        one = self._choose(step)
        if one is None:
            return FindPosition()
        self._key, self._nth = self._stack.items[one.message].key, one.nth
        if step:
            self._near = one.message
        self.selection = self._selection_of(one)
        return self.recount()

    def recount(self) -> FindPosition:
        """Say how many there are now, and which of them is shown."""
        self._count()
        if not self._counts.total:
            return FindPosition()
        current = self._current()
        number = None if current is None else self._counts.number(current)
        if number is None:
            number = self._counts.neighbour(None, step=0, near=self._near)
        return FindPosition(number + 1, self._counts.total)

    def marks(self, height: int) -> Marks:
        """Where occurrences are in a bar of some height, as counted last. Lays out nothing."""
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
        """Scroll the current one's row sideways to it; the row is laid out by now."""
        if self._row is not None and self._hit is not None:
            self._row.reveal(self._hit)

    def _count(self) -> None:
        self._counts.count([layout.searched for layout in self._stack.layouts])

    def _current(self) -> Occurrence | None:
        message = self._stack.index_of(self._key)
        return None if message is None else Occurrence(message, self._nth)

    def _choose(self, step: int) -> Occurrence | None:
        current, one = self._current(), None
        for _ in range(_TRIES):
            self._count()
            if not self._counts.total:
                return None
            number = self._counts.neighbour(current, step=step, near=self._near)
            one = self._counts.occurrence(number)
            if self._stack.layouts[one.message].searched.is_read:
                break
            self._stack.open_whole(one.message)
        return one

    def _selection_of(self, one: Occurrence) -> Selection:
        places = self._stack.open_whole(one.message).places
        rows = places.rows_between(FIRST_PLACE, LAST_PLACE)
        seen = [(at, row, hit) for at, row in rows for hit in self._hits.within(row)]
        if not seen:
            start = Caret(one.message, FIRST_PLACE)
            return Selection(start, start)
        ordinal, self._row, self._hit = seen[min(one.nth, len(seen) - 1)]
        start, end = Place(ordinal, self._hit.start), Place(ordinal, self._hit.end)
        return Selection(Caret(one.message, start), Caret(one.message, end))

    def _ys(self, layout: MessageLayout, pixels: float) -> Iterator[float]:
        """About where occurrences are in a message, one at least in each pixel that has some."""
        assert self._hits.wanted is not None
        searched = layout.searched
        text, pattern = searched.text, self._hits.wanted.pattern(searched)
        tops, step = _text_tops(layout), max(1, int(len(text) / pixels))
        match = pattern.search(text)
        while match is not None:
            yield _y_at(tops, match.start())
            match = pattern.search(text, max(match.end(), match.start() + step))

    def _y_of(self, layout: MessageLayout, nth: int) -> float:
        assert self._hits.wanted is not None
        searched = layout.searched
        matches = self._hits.wanted.pattern(searched).finditer(searched.text)
        match = next(islice(matches, nth, None), None)
        return 0 if match is None else _y_at(_text_tops(layout), match.start())


def _text_tops(layout: MessageLayout) -> list[_TextTop]:
    """Where rows begin and end; of a message without rows where it does itself."""
    searched = layout.searched
    tops = [_TextTop(0, 0)]
    if searched.is_read:
        offset = 0
        for y, row in layout.places.text_rows():
            tops += [_TextTop(offset, y), _TextTop(offset + len(row.text), y + row.height)]
            offset += len(row.text) + len(ROW_END)
    return [*tops, _TextTop(len(searched.text), layout.height)]


def _y_at(tops: Sequence[_TextTop], offset: int) -> float:
    """About where a character is, from the characters before and after it that are known."""
    after = min(max(1, bisect_left(tops, offset, key=lambda top: top.offset)), len(tops) - 1)
    first, last = tops[after - 1], tops[after]
    share = (offset - first.offset) / max(1, last.offset - first.offset)
    return first.y + (last.y - first.y) * share
