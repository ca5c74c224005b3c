"""Value types for positions in a message: text boundaries, selections, hits, paint requests."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainter

from app.widgets.transcript.rows.ranges import Range
from app.widgets.transcript.rows.row import Hit, Target, TranscriptRow

BODY = 1_000_000  # ordinal of the first body row; rows of reasoning have smaller ordinals
END = 2 * BODY  # an ordinal that is greater than that of every row


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A position between two characters in the text of a message."""

    row: int  # ordinal of the row; see TextSections
    offset: int  # number of characters of the row that are before the position


@dataclass(frozen=True, slots=True)
class TextSections:
    """The rows of a message that have text, as two ranges of row indices.

    One range is the reasoning, the other is the body (the text of the message). The ordinal of a
    row is its index in the reasoning, or BODY plus its index in the body. A row inserted above the
    text changes the row indices, but not the ordinals.
    """

    reasoning: range = range(0)
    body: range = range(0)

    def has_text(self, index: int) -> bool:
        return index in self.reasoning or index in self.body

    def ordinal(self, index: int) -> int:
        """Convert the row index of a text row to its ordinal."""
        if index < self.body.start:
            return index - self.reasoning.start
        return BODY + index - self.body.start

    def index(self, ordinal: int) -> int:
        """Convert an ordinal to a row index. There may be no row at that index."""
        if ordinal < BODY:
            return self.reasoning.start + ordinal
        return self.body.start + ordinal - BODY


@dataclass(frozen=True, slots=True)
class LineStart:
    """The start of a line of text, and the y coordinate of the line's top."""

    place: Place
    y: int


@dataclass(frozen=True, slots=True)
class PlaceRange:
    """The selected text [start, end) of a message."""

    start: Place
    end: Place


@dataclass(frozen=True, slots=True)
class RowTarget:
    """A link or button, with its row."""

    row: TranscriptRow
    target: Target


@dataclass(frozen=True, slots=True)
class MessageHit:
    """A link or button with its rectangle in message coordinates, its name and its tooltip."""

    at: RowTarget
    rect: QRectF
    name: str
    tip: str
    row_left: float  # x coordinate of the row in the message

    @classmethod
    def of(cls, row: TranscriptRow, hit: Hit, corner: QPointF) -> MessageHit:
        at, rect = RowTarget(row, hit.target), hit.rect.translated(corner)
        return cls(at, rect, hit.name, hit.tip, corner.x())


@dataclass(frozen=True, slots=True)
class RowHits:
    """A row, its rectangle in message coordinates, and its links and buttons."""

    row: TranscriptRow
    rect: QRectF
    hits: list[MessageHit]


@dataclass(slots=True)
class MessagePaint:
    """A request to paint a message. The painter's origin is the top left of the message."""

    painter: QPainter
    top: float  # only rows between top and bottom need painting
    bottom: float
    selected: PlaceRange | None
    hovered: RowTarget | None
    confirmed: RowTarget | None  # button that shows "Copied" for a moment
    pointed_at: bool  # True if the mouse or the keyboard focus is in the message
    unfinished: dict[TranscriptRow, None]  # output: painted rows that still need idle work

    def selected_in(self, row: TranscriptRow, ordinal: int) -> Range | None:
        """Return the selected character range in the text of a row, or None."""
        selected, length = self.selected, len(row.text)
        if selected is None or not selected.start.row <= ordinal <= selected.end.row:
            return None
        start = selected.start.offset if selected.start.row == ordinal else 0
        end = min(length, selected.end.offset if selected.end.row == ordinal else length)
        return Range(start, end) if start < end else None


@dataclass(frozen=True, slots=True)
class Released:
    """The size of a message after its rows were dropped. The height is exact for this width."""

    width: int
    height: int


@dataclass(frozen=True, slots=True)
class PageBreak:
    """A place in a message at which a page may end. The gap between the two parts is left out."""

    end: int  # y coordinate of the end of the upper part
    start: int  # y coordinate of the start of the lower part
    # Top and bottom of the header of the table that the lower part continues, or None.
    header: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Spot:
    """A point in the coordinates of a message."""

    message: int  # index of the message in the transcript
    x: float
    y: float


def target_in(row: TranscriptRow, at: RowTarget | None) -> Target | None:
    return at.target if at is not None and at.row is row else None
