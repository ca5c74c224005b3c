"""The geometry of one message: size, layout, painting, hit tests. Main thread only.

A message is a column of rows (pile.py): paragraphs, code blocks, buttons. A MessageContent
(content.py) makes the rows from the message. Its method make_rows() returns the rows and a
MessageShape. The shape tells which rows have text, are in the bubble or show the caret, and if text
is hidden. A MessageLayout measures, paints and hit-tests the rows. The MessageStack
(layout/stack.py) has at most one MessageLayout per message and moves it through these states:

| state | reached by | rows | height |
|---|---|---|---|
| new | the constructor, rebuild_rows() | none | estimate |
| partly measured | lay_out_between(), when the message is visible | all or some | estimate |
| settled | more calls of lay_out_between(), or of advance() in idle time | all, measured | exact |
| released | release(), when the message is far from the view | none | exact for its width |

The flag content.is_changed is True while the rows are out of date. The content sets it after a
change; resize() sets it if a folded message may need other rows for a new width. If the flag is set
or there are no rows, the next layout calls make_rows(), which returns at least one row and resets
the flag. A change of the message or of the column width makes the height an estimate again.
Coordinates are relative to the top left corner of the message.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

from PySide6.QtCore import QRectF, QSizeF

from app.viewmodels.find import ROW_END, SearchText, case_folded
from app.viewmodels.transcript import TranscriptItem
from app.widgets.transcript.messages.body import RowKit
from app.widgets.transcript.messages.content import MessageContent
from app.widgets.transcript.messages.estimates import estimate_height
from app.widgets.transcript.messages.page_breaks import find_page_break
from app.widgets.transcript.messages.pile import RowPile
from app.widgets.transcript.messages.places import (
    MessageHit,
    MessagePaint,
    PageBreak,
    Released,
    RowHits,
    target_in,
)
from app.widgets.transcript.messages.text_places import TextPlaces
from app.widgets.transcript.rows.inset import InsetArea
from app.widgets.transcript.rows.row import Paint, RowAction, TranscriptRow, paint_caret

# Number of rows that one call of advance() measures, unless they take longer than MEASURE_S
# seconds.
MEASURE_ROWS = 20
MEASURE_S = 0.004
# Maximum number of characters that lay_out_between() parses. To parse and lay out this number of
# characters takes 80 ms.
PARSED_AT_ONCE = 40_000


class MessageLayout:
    """The rows of one message with their positions.

    A layout is "settled" when all text is parsed and all rows are measured. Only then is the height
    exact. No signal reports a new height: MessageStack reads the height after each layout step.
    """

    def __init__(self, kit: RowKit, content: MessageContent) -> None:
        self.content = content
        self.is_newest = False  # True for the last message; its buttons are always visible
        self._kit = kit
        self._pile = RowPile(kit.cache)
        self.places = TextPlaces(self._pile)
        # Size of the message, stored when release() dropped its rows. None while the message has
        # rows.
        self._released: Released | None = None
        # Cached text for the find bar. None if the text must be computed again. release() keeps the
        # text, so that the find bar still searches the displayed text.
        self._search_text: SearchText | None = None

    @property
    def item(self) -> TranscriptItem:
        return self.content.item

    @property
    def text(self) -> str:
        return self.content.text

    @property
    def details(self) -> str:
        """Technical details of the problem that ended the answer, or an empty string."""
        return "" if self.item.problem is None else self.item.problem.details

    @property
    def rows(self) -> list[TranscriptRow]:
        """Rows from top to bottom. Empty before the first layout and after release()."""
        return self._pile.rows

    @property
    def width(self) -> int:
        return self._pile.width

    @property
    def height(self) -> int:
        """Height of the message. It includes estimates for rows that are not measured."""
        if self.rows:
            return self._pile.height + self._estimate_rest()
        if self._released is not None:
            return self._released.height
        return estimate_height(self._kit.look, self.item, max(1, self.width))

    @property
    def is_settled(self) -> bool:
        """True if the height is exact at the current width."""
        if self._released is not None:
            return self._released.width == self.width
        return self._is_current and self._pile.is_settled and not self._num_unparsed

    # Changes of width, content and look.

    def resize(self, width: int) -> None:
        """Set the width of the column. Measured heights become estimates."""
        if width != self.width:
            self._pile.resize(width)
            # A folded message shows a fixed number of lines. With a new width, other text fits into
            # these lines, so the rows must be made again.
            if self._pile.shape.is_cut_by_width:
                self.content.is_changed = True
                self._forget_size_and_text()

    def update(self, item: TranscriptItem) -> None:
        """Replace the item with a newer state of the same message.

        The content compares the two states, and sets is_changed if the rows must be made again.
        """
        before = self.item
        self.content.update(item)
        if self.item != before:
            self._forget_size_and_text()

    def toggle(self, action: RowAction) -> None:
        """Fold or unfold the part of the message that the action refers to."""
        self.content.toggle(action)
        self._forget_size_and_text()

    def rebuild_rows(self) -> None:
        """Drop all rows, because the theme or zoom has changed. The next layout makes new rows."""
        self._pile.clear()
        self._released = None

    def remeasure(self) -> bool:
        """Mark rows for measuring whose formula was typeset or whose line wrapping was switched.

        Return True if at least one row was marked.
        """
        return self._pile.unsettle_stale()

    def release(self) -> None:
        """Drop the rows and the parsed text to save memory, but keep the height.

        Do nothing if the layout is not settled, if a row waits for a formula, or if the content
        cannot drop its text now. MessageStack calls this method for messages far from the view.
        """
        if self._released is not None or not self.is_settled:
            return
        if not any(row.is_waiting for row in self.rows):
            released, search_text = Released(self.width, self.height), self.search_text
            if self.content.release():
                self._pile.clear()
                self._released, self._search_text = released, search_text

    # Layout.

    def prepare(self) -> None:
        """Parse the whole text at once and make its rows, without measuring them.

        The call is slow for a long text. It is needed when selected text is copied.
        """
        self._refresh()
        while self._num_unparsed:
            self._parse_more()

    def unfold(self) -> None:
        """Unfold the message, parse its whole text and make the rows.

        Call this method before the find bar shows a match in the message.
        """
        self._refresh()
        if self._pile.shape.is_folded:
            self.toggle(RowAction.TOGGLE_FOLD)
        self.prepare()

    def lay_out_between(self, top: float, bottom: float) -> bool:
        """Lay out the part of the message that is between y = top and y = bottom.

        MessageStack calls this method for each visible message. Unparsed text is parsed unless it
        is very long.

        Return True if a row or the height of the message changed. The caller must then call this
        method again, because other rows may be visible now.
        """
        before = self.height
        changed = self._refresh()
        # Text is left to advance() if it is longer than PARSED_AT_ONCE, or if no more marks may be
        # parsed in this frame.
        while 0 < self._num_unparsed <= PARSED_AT_ONCE and self._kit.allowance > 0:
            changed |= self._parse_more()
        for number in self._pile.between(top, bottom):
            changed |= self._pile.measure(number)
        self._pile.count_settled()
        return changed or self.height != before

    def advance(self) -> None:
        """Do one step towards the exact height: parse a slice of text or measure the next rows.

        MessageStack calls this method in idle time until the layout is settled.
        """
        self._refresh()
        if self._num_unparsed:
            self._parse_more()
            return
        first, until = self._pile.num_settled, perf_counter() + MEASURE_S
        for number in range(first, min(first + MEASURE_ROWS, len(self.rows))):
            self._pile.measure(number)
            self._pile.num_settled = number + 1
            if perf_counter() > until:
                break

    @property
    def _is_current(self) -> bool:
        """True if there are rows and they show the current content."""
        return bool(self.rows) and not self.content.is_changed

    @property
    def _num_unparsed(self) -> int:
        """Number of characters that have no rows yet; at least 1 until all parsing is done."""
        texts = self.content.markdown
        return sum(max(1, text.num_unfed) for text in texts if not text.is_fed)

    def _estimate_rest(self) -> int:
        width = self._pile.text_width
        return sum(text.estimate_rest(width) for text in self.content.markdown)

    def _refresh(self) -> bool:
        """Replace rows that are out of date; return True if any row changed."""
        return not self._is_current and self._make_rows()

    def _parse_more(self) -> bool:
        """Parse the next slice of text and make its rows; return True if any row changed."""
        text = next(text for text in self.content.markdown if not text.is_fed)
        before = text.num_parsed_marks
        text.feed()
        self._kit.allowance -= text.num_parsed_marks - before
        return self._make_rows()

    def _make_rows(self) -> bool:
        self._forget_size_and_text()
        return self._pile.replace(self.content.make_rows(self.rows, self.width))

    def _forget_size_and_text(self) -> None:
        """Discard the height that release() stored and the text for the find bar."""
        self._released = self._search_text = None

    # Painting.

    def page_break(self, top: int, bottom: int) -> PageBreak | None:
        """Return the last place between two y coordinates at which a page may end, or None."""
        return find_page_break(self.rows, self._pile, top, bottom)

    def rows_between(self, top: float, bottom: float) -> list[TranscriptRow]:
        """Return the rows that overlap the range from y = top to y = bottom."""
        return [self.rows[number] for number in self._pile.between(top, bottom)]

    def take_changed_top(self) -> int | None:
        """Return the y coordinate of the topmost change since the last call, or None."""
        return self._pile.take_changed_top()

    def paint(self, paint: MessagePaint) -> None:
        """Paint the rows between paint.top and paint.bottom.

        Call lay_out_between() for the same range first. Painted rows that need idle work, such as
        code without colours, are added to paint.unfinished.
        """
        first = self._pile.at(paint.top)
        if first is None:
            return
        bubble = self._pile.shape.bubble
        if bubble is not None:
            bottom = self._pile.gap_top(bubble.num_rows)
            bubble.paint(paint.painter, self.rows, self.width, bottom)
        for number in range(first, len(self.rows)):
            if self._pile.top(number) >= paint.bottom:
                break
            self._paint_row(paint, number)

    def _paint_row(self, paint: MessagePaint, number: int) -> None:
        row, corner, shape = self.rows[number], self._pile.corner(number), self._pile.shape
        has_text, colors = shape.text.has_text(number), self._kit.look.colors
        self._kit.cache.touch(row)
        self._paint_inset(paint, number)
        paint.painter.translate(corner)
        row.paint(
            Paint(
                painter=paint.painter,
                top=paint.top - corner.y(),
                bottom=paint.bottom - corner.y(),
                ground=colors.canvas if shape.bubble is None else colors.user_bubble,
                selected=paint.selected_in(row, shape.text.ordinal(number)) if has_text else None,
                found=self._kit.matches.within(row) if has_text else (),
                hovered=target_in(row, paint.hovered),
                confirmed=target_in(row, paint.confirmed),
                actions_shown=paint.pointed_at or self.is_newest or self.item.version.count > 1,
                unfinished=paint.unfinished,
            )
        )
        if number == shape.caret_row:
            paint_caret(paint.painter, self._kit.look, row)
        paint.painter.translate(-corner)

    def _paint_inset(self, paint: MessagePaint, number: int) -> None:
        row, x, y = self.rows[number], self._pile.left(number), self._pile.top(number)
        if row.inset is not None:
            width = self._pile.outer_width(number)
            paint.painter.translate(x, y)
            row.inset.paint(paint.painter, InsetArea(width, row.height, row.gap, row.is_rtl))
            paint.painter.translate(-x, -y)

    # Hit tests and search.

    def hit(self, x: float, y: float) -> MessageHit | None:
        """Return the link or button at a point, or None."""
        number = self._pile.at(y)
        if number is None:
            return None
        row, corner = self.rows[number], self._pile.corner(number)
        hit = row.hit(x - corner.x(), y - corner.y())
        return None if hit is None else MessageHit.of(row, hit, corner)

    def clickable(self) -> Iterator[RowHits]:
        """Yield each measured row that has links or buttons, with these links and buttons.

        The keyboard focus and screen readers use the result.
        """
        for number, row in enumerate(self.rows):
            # A row that was not measured yet has the width -1 and no positions of links.
            found = row.hits() if row.width >= 0 else ()
            # EXPLAIN targets only have a tooltip: they cannot be clicked.
            hits = [hit for hit in found if hit.target.action is not RowAction.EXPLAIN]
            if hits:
                corner = self._pile.corner(number)
                rect = QRectF(corner, QSizeF(row.width, row.height))
                yield RowHits(row, rect, [MessageHit.of(row, hit, corner) for hit in hits])

    def row_at(self, y: float) -> TranscriptRow | None:
        number = self._pile.at(y)
        return None if number is None else self.rows[number]

    @property
    def actions_top(self) -> int:
        """The y coordinate of the message's buttons, which are in the last row."""
        return self._pile.top(len(self.rows) - 1) if self.rows else 0

    @property
    def search_text(self) -> SearchText:
        """Text for the find bar: the displayed text if all rows exist, else the Markdown source."""
        known = self._search_text
        if known is not None and not self.rows:
            return known  # the rows were released: the text that they had when they existed
        if known is None or not known.is_read:
            read = self._read_text()
            if read is not None:
                known = SearchText(case_folded(read), is_read=True)
            elif known is None:
                known = SearchText(case_folded(self.text), is_read=False)
            self._search_text = known
        return known

    def _read_text(self) -> str | None:
        """Return the displayed text of all rows, or None if a part of the text has no rows.

        Text has no rows if it is not parsed yet, or if the message is folded.
        """
        plain = self.content.plain_text()
        if plain is not None:
            return plain
        if not self._is_current or self._num_unparsed or self._pile.shape.is_folded:
            return None
        return ROW_END.join(row.text for _, row in self.places.text_rows())
