"""One message of the transcript as a pile of rows: sizes, painting, hits, text. Main thread.

A message costs nothing until it is settled; then its rows are parsed and the visible ones
measured. Coordinates are its own: x from the column's left, y from its top.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from PySide6.QtCore import QPointF, QRectF, QSizeF

from app.viewmodels.find import ROW_END, Searched, folded
from app.viewmodels.transcript import TranscriptItem
from app.widgets.transcript.messages.body import Kit, RowsFrom
from app.widgets.transcript.messages.pile import RowPile
from app.widgets.transcript.messages.places import (
    BODY,
    Line,
    MessageHit,
    MessagePaint,
    Place,
    Released,
    RowHits,
    target_in,
)
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.row import Paint, RowAction, TranscriptRow

MEASURE_ROWS = 20  # measured in one idle step
PARSED_AT_ONCE = 40_000  # characters: 80 ms when all of it is new


class MessageLayout(ABC):
    """The rows of one message. Subclasses say which rows, and where the text stands."""

    space_below: int  # how much of its end the eye takes for the gap to the next one, at zoom 1

    def __init__(self, kit: Kit, item: TranscriptItem) -> None:
        self.item = item
        self.newest = False
        self.width = 0
        self._kit = kit
        self._pile = RowPile(kit.cache)
        self._dirty = True  # the rows do not show the item yet
        self._released: Released | None = None
        self._searched: Searched | None = None

    @property
    def rows(self) -> list[TranscriptRow]:
        """None before the first settling, and far from what is visible."""
        return self._pile.rows

    def take_changed_top(self) -> int | None:
        """Return the y from which on the picture has changed since the last call."""
        return self._pile.take_changed_top()

    @property
    def height(self) -> int:
        """The height as far as it is known; an estimate before the first settle."""
        if self.rows:
            return self._pile.height + self._estimate_rest()
        if self._released is not None:
            return self._released.height
        return self.estimate(self._kit.look, self.item, max(1, self.width))

    @property
    def is_settled(self) -> bool:
        """Whether the height is exact."""
        if self._released is not None:
            return self._released.width == self.width
        return not self._dirty and self._pile.is_settled and not self._num_unparsed()

    def resize(self, width: int) -> None:
        """Take another width; heights stay as estimates."""
        if width != self.width:
            self.width = width
            self._pile.num_settled = 0

    def update(self, item: TranscriptItem) -> None:
        """Show other values of the same message."""
        if item != self.item:
            self.item = item
            self._change()

    def set_newest(self, *, newest: bool) -> None:
        """Say whether this is the last message: only that one keeps its buttons."""
        if newest != self.newest:
            self.newest = newest
            self._change()

    def relook(self) -> None:
        """The kit has another look: make everything anew."""
        searched = self._searched
        self._forget_rows()
        self._change()
        self._searched = searched  # no look changes what is read

    def remeasure(self) -> bool:
        """Pictures have come, lines wrap: rows may have other heights. False if none has."""
        return self._pile.unsettle_stale()

    def release(self) -> None:
        """Drop everything but the height: the message is far from what is visible."""
        if self._released is not None or not self.is_settled or not self.can_release:
            return
        if not any(row.is_waiting for row in self.rows):
            self._released = Released(self.width, self.height)
            self._searched = self.searched  # what is read is known, and stays so
            self._forget_rows()
            self._forget_text()

    def prepare(self) -> None:
        """Have rows of all the text, however long it is."""
        self._refresh()
        while self._num_unparsed():
            self._parse_more()
            self._refresh()

    def lay_out_between(self, top: float, bottom: float) -> bool:
        """Make exact what lies between top and bottom; True if any height changed."""
        before = self.height
        changed = self._refresh()
        # What is very long is left to idle time, but for its start.
        while self._num_unparsed() and (self._num_unparsed() <= PARSED_AT_ONCE or not self.rows):
            self._parse_more()
            changed |= self._refresh()
        first, last = self._pile.at(top), self._pile.at(bottom)
        if first is not None and last is not None:
            for number in range(first, last + 1):
                changed |= self._measure(number)
        self._pile.count_settled(self._row_width)
        return changed or self.height != before

    def advance(self) -> None:
        """Do the next bit of what is missing for an exact height."""
        self._refresh()
        if self._num_unparsed():
            self._parse_more()
            self._refresh()
            return
        first = self._pile.num_settled
        for number in range(first, min(first + MEASURE_ROWS, len(self.rows))):
            self._measure(number)
            self._pile.num_settled = number + 1

    def paint(self, paint: MessagePaint) -> None:
        first = self._pile.at(paint.top)
        if first is None:
            return
        self._paint_background(paint)
        for number in range(first, len(self.rows)):
            y = self._pile.top(number)
            if y >= paint.bottom:
                break
            self._paint_row(paint, number, y)

    def hit(self, x: float, y: float) -> MessageHit | None:
        """Return what a click at a point acts on."""
        number = self._pile.at(y)
        if number is None:
            return None
        row, corner = self.rows[number], self._corner(number)
        hit = row.hit(x - corner.x(), y - corner.y())
        if hit is None:
            return None
        return MessageHit.of(row, hit, corner)

    def clickable(self) -> Iterator[RowHits]:
        """Yield the rows that something can be clicked in, as far as rows are measured."""
        for number, row in enumerate(self.rows):
            found = row.hits() if row.width >= 0 else ()
            hits = [hit for hit in found if hit.target.action is not RowAction.EXPLAIN]
            if hits:
                corner = self._corner(number)
                rect = QRectF(corner, QSizeF(row.width, row.height))
                yield RowHits(row, rect, [MessageHit.of(row, hit, corner) for hit in hits])

    def place_at(self, x: float, y: float) -> Place:
        """Return the text boundary nearest to a point."""
        number = self._pile.at(y) or 0
        for candidate in (*range(number, len(self.rows)), *range(number - 1, -1, -1)):
            row = self.rows[candidate]
            if not self._has_text(candidate):
                continue
            corner = self._corner(candidate)
            if candidate > number:
                return Place(self._ordinal(candidate), 0)
            if candidate < number:
                return Place(self._ordinal(candidate), len(row.text))
            offset = row.position_at(x - corner.x(), max(0.0, y - corner.y()))
            return Place(self._ordinal(candidate), offset)
        return Place(BODY, 0)

    def rows_between(self, first: Place, last: Place) -> Iterator[tuple[int, TranscriptRow]]:
        """Yield the ordinals and rows that have text, from one place to another."""
        for number in range(self._number(first.row), len(self.rows)):
            if self._has_text(number):
                ordinal = self._ordinal(number)
                if ordinal > last.row:
                    return
                yield ordinal, self.rows[number]

    def text_row(self, ordinal: int) -> TranscriptRow | None:
        """Return the row of text with a stable number."""
        number = self._number(ordinal)
        return self.rows[number] if number < len(self.rows) and self._has_text(number) else None

    def row_at(self, y: float) -> TranscriptRow | None:
        number = self._pile.at(y)
        return None if number is None else self.rows[number]

    def has_text_at(self, y: float) -> bool:
        number = self._pile.at(y)
        return number is not None and self._has_text(number)

    def line_at(self, y: float) -> Line | None:
        """Return the line of text at a height, None where there is no text."""
        number = self._pile.at(y)
        if number is None or not self._has_text(number) or self.rows[number].width < 0:
            return None
        row, top = self.rows[number], int(self._corner(number).y())
        if not top <= y < top + row.height:
            return None
        offset = row.position_at(0, y - top)
        return Line(Place(self._ordinal(number), offset), top + row.line_top(offset))

    def line_top(self, place: Place) -> int | None:
        """Return the y of the line of text at a place, None if it is not there (any more)."""
        row = self.text_row(place.row)
        if row is None:
            return None
        number = self._number(place.row)
        self._measure(number)
        return int(self._corner(number).y()) + row.line_top(place.offset)

    @property
    def details(self) -> str:
        """What is known of why it failed."""
        return "" if self.item.problem is None else self.item.problem.details

    @property
    def actions_top(self) -> int:
        """The y of the buttons, which are in the last row."""
        return self._pile.top(len(self.rows) - 1) if self.rows else 0

    @property
    def searched(self) -> Searched:
        """What finding looks through: what is read, where that is known."""
        known = self._searched
        if known is None or not known.is_read:
            read = self._read_text()
            if read is not None:
                known = Searched(folded(read), is_read=True)
            elif known is None:
                known = Searched(folded(self.text), is_read=False)
            self._searched = known
        return known

    def text_rows(self) -> Iterator[tuple[int, TranscriptRow]]:
        """Yield the rows that have text, and their y."""
        for number, row in enumerate(self.rows):
            if self._has_text(number):
                yield self._pile.top(number), row

    def _read_text(self) -> str | None:
        """What is read, its rows apart; None as long as there are not rows of all of it."""
        if not self.rows or self._dirty or self._num_unparsed():
            return None
        return ROW_END.join(row.text for _, row in self.text_rows())

    @property
    @abstractmethod
    def text(self) -> str:
        """The text that the copy button copies."""

    @abstractmethod
    def toggle(self, action: RowAction) -> None:
        """Fold or unfold the part that the action names."""

    @abstractmethod
    def show_all(self) -> None:
        """Unfold the message's text, if it is folded."""

    @property
    @abstractmethod
    def can_release(self) -> bool:
        """Whether all there is to show can be made again from the item."""

    @abstractmethod
    def _forget_text(self) -> None:
        """Drop what was parsed."""

    @classmethod
    @abstractmethod
    def estimate(cls, look: Look, item: TranscriptItem, width: int) -> int:
        """Return about how high a message is, at no cost."""

    @abstractmethod
    def _make_rows(self) -> RowsFrom:
        """Return the rows from the first on that may have changed; unchanged ones as they were."""

    @abstractmethod
    def _row_left(self, number: int) -> int:
        """Return the x of a row."""

    @abstractmethod
    def _row_width(self, number: int) -> int:
        """Return the width that a row may fill."""

    @abstractmethod
    def _ordinal(self, number: int) -> int:
        """Return the stable number of a row: see BODY."""

    @abstractmethod
    def _number(self, ordinal: int) -> int:
        """Return where the row with a stable number would be."""

    @abstractmethod
    def _has_text(self, number: int) -> bool:
        """Whether the row's text is part of the message."""

    @abstractmethod
    def source_text(self, ordinal: int) -> str:
        """Return the text that a row's source is a range of."""

    @abstractmethod
    def _num_unparsed(self) -> int:
        """Return how many characters are not rows yet; at least 1 while there is work left."""

    @abstractmethod
    def _parse_more(self) -> None:
        """Parse the next slice of text."""

    @abstractmethod
    def _estimate_rest(self) -> int:
        """Return about how high the text is that is not parsed yet."""

    @property
    @abstractmethod
    def _ground(self) -> str:
        """The colour that the rows lie on."""

    @abstractmethod
    def _paint_background(self, paint: MessagePaint) -> None:
        """Paint what lies under the rows."""

    @abstractmethod
    def _paint_over(self, paint: MessagePaint, number: int) -> None:
        """Paint what lies over a row; the painter stands at the row."""

    def _refresh(self) -> bool:
        """Bring the rows up to date with the item; True if any changed."""
        if not self._dirty:
            return False
        self._dirty = False
        self._released = self._searched = None
        made = self._make_rows()
        return self._pile.replace(made.first, made.rows, self._row_width)

    def _measure(self, number: int) -> bool:
        """Make one row exact."""
        return self._pile.measure(number, self._row_width(number))

    def _change(self) -> None:
        """The item is not what the rows show any more."""
        self._dirty = True
        self._released = self._searched = None

    def _forget_rows(self) -> None:
        self._dirty = True
        self._pile.clear()

    def _paint_row(self, paint: MessagePaint, number: int, y: int) -> None:
        row, x = self.rows[number], self._row_left(number)
        has_text = self._has_text(number)
        self._kit.cache.touch(row)
        paint.painter.translate(x, y)
        row.paint(
            Paint(
                painter=paint.painter,
                top=paint.top - y,
                bottom=paint.bottom - y,
                ground=self._ground,
                selected=paint.selected_in(row, self._ordinal(number)) if has_text else None,
                found=self._kit.hits.within(row) if has_text else (),
                hovered=target_in(row, paint.hovered),
                confirmed=target_in(row, paint.confirmed),
                actions_shown=paint.pointed_at or self.newest or self.item.version.count > 1,
                unfinished=paint.unfinished,
            )
        )
        self._paint_over(paint, number)
        paint.painter.translate(-x, -y)

    def _corner(self, number: int) -> QPointF:
        return QPointF(self._row_left(number), self._pile.top(number))
