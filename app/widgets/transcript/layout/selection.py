"""Selections that can span several messages, and the text to copy. Main thread only.

A block that is selected completely is copied as Markdown source. A partly selected block is copied
as displayed text.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice

from app.widgets.transcript.messages.layouts import MessageLayouts
from app.widgets.transcript.messages.message import MessageLayout
from app.widgets.transcript.messages.places import END, Place, PlaceRange
from app.widgets.transcript.rows.ranges import Range
from app.widgets.transcript.rows.row import TranscriptRow

FIRST_PLACE = Place(0, 0)
LAST_PLACE = Place(END, 0)


@dataclass(frozen=True, slots=True, order=True)
class Caret:
    """A position between two characters in the transcript."""

    message: int
    place: Place


@dataclass(frozen=True, slots=True)
class Selection:
    """The text between two carets. The focus can be before or after the anchor."""

    anchor: Caret  # where the mouse button was pressed
    focus: Caret  # where the mouse is

    @property
    def is_empty(self) -> bool:
        return self.anchor == self.focus

    @property
    def start(self) -> Caret:
        return min(self.anchor, self.focus)

    @property
    def end(self) -> Caret:
        return max(self.anchor, self.focus)

    def holds(self, caret: Caret) -> bool:
        """Return True if a caret is inside the selected text, and not at one of its ends."""
        return self.start < caret < self.end

    def within(self, message: int) -> PlaceRange | None:
        """Return the selected part of the message with index `message`, or None."""
        if not self.start.message <= message <= self.end.message:
            return None
        start = self.start.place if message == self.start.message else FIRST_PLACE
        end = self.end.place if message == self.end.message else LAST_PLACE
        return PlaceRange(start, end)


@dataclass(frozen=True, slots=True)
class _Fragment:
    """The selected part of one row."""

    part: Range
    ordinal: int  # ordinal of the row; see TextSections
    row: TranscriptRow
    whole: bool  # True if all text of the row is selected


def selected_text(messages: MessageLayouts, selection: Selection) -> str:
    """Return the text to copy to the clipboard for a selection."""
    texts: list[str] = []
    for number in range(selection.start.message, selection.end.message + 1):
        within = selection.within(number)
        assert within is not None
        if within == PlaceRange(FIRST_PLACE, LAST_PLACE):
            texts.append(messages.items[number].text)
        else:
            texts.append(_text_within(messages[number], within))
    return "\n\n".join(text for text in texts if text)


def _text_within(message: MessageLayout, within: PlaceRange) -> str:
    pieces: list[str] = []
    before: _Fragment | None = None
    for fragment in _fragments(message, within):
        if before is not None:
            pieces.append(_separator(message, before, fragment))
        source = fragment.row.source
        if fragment.whole and source is not None:
            pieces.append(message.content.source_text(fragment.ordinal)[source.start : source.end])
        else:
            pieces.append(fragment.row.copied(fragment.part))
        before = fragment
    return "".join(pieces)


def _fragments(message: MessageLayout, within: PlaceRange) -> list[_Fragment]:
    message.prepare()
    fragments: list[_Fragment] = []
    for ordinal, row in message.places.rows_between(within.start, within.end):
        start = within.start.offset if ordinal == within.start.row else 0
        end = within.end.offset if ordinal == within.end.row else len(row.text)
        whole = start == 0 and end == len(row.text)
        if start < end or whole:
            fragments.append(_Fragment(Range(start, end), ordinal, row, whole))
    return _with_cut_tables(message, fragments)


def _with_cut_tables(message: MessageLayout, fragments: list[_Fragment]) -> list[_Fragment]:
    """Mark all rows of a table as partly selected if not all of the table is selected."""
    tables: list[list[_Fragment]] = []
    for fragment in fragments:
        if fragment.row.continues and tables:
            tables[-1].append(fragment)
        else:
            tables.append([fragment])
    return [
        replace(fragment, whole=fragment.whole and is_whole)
        for table, is_whole in [(table, _is_whole(message, table)) for table in tables]
        for fragment in table
    ]


def _is_whole(message: MessageLayout, table: list[_Fragment]) -> bool:
    if table[0].row.continues or not all(part.whole for part in table):
        return False
    rows = message.places.rows_between(Place(table[-1].ordinal, 0), LAST_PLACE)
    return not any(row.continues for _, row in islice(rows, 1, 2))


def _separator(message: MessageLayout, before: _Fragment, after: _Fragment) -> str:
    """Return the newlines to copy between two rows: as many as the source has between them."""
    first, second = before.row.source, after.row.source
    if first is None or second is None:
        return "\n"
    between = message.content.source_text(after.ordinal)[first.end : second.start]
    return "\n" * max(1, between.count("\n"))
