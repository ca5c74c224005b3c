"""Value types for positions in a message: text boundaries, selections, hits, paint requests."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainter

from app.widgets.transcript.rows.flow import Range
from app.widgets.transcript.rows.row import Hit, Target, TranscriptRow

BODY = 1_000_000  # added to the ordinals of body rows; smaller ordinals are rows of reasoning
END = 2 * BODY  # greater than the ordinal of any row


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A character boundary in the text of a message."""

    row: int  # ordinal of the row, see TextSections
    offset: int  # characters before the boundary in the text of the row


@dataclass(frozen=True, slots=True)
class TextSections:
    """The rows of a message that have text, as ranges of row indices.

    The ordinal of a row is its index in the reasoning, or BODY plus its index in the body. Row
    indices change when a row is inserted above the text; ordinals do not.
    """

    reasoning: range = range(0)
    body: range = range(0)

    def has_text(self, index: int) -> bool:
        return index in self.reasoning or index in self.body

    def ordinal(self, index: int) -> int:
        """Return the ordinal of the text row with an index."""
        if index < self.body.start:
            return index - self.reasoning.start
        return BODY + index - self.body.start

    def index(self, ordinal: int) -> int:
        """Return the index of the row with an ordinal; there may be no row at that index."""
        if ordinal < BODY:
            return self.reasoning.start + ordinal
        return self.body.start + ordinal - BODY


@dataclass(frozen=True, slots=True)
class Line:
    """The start of a line of text, and the y of its top."""

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
    row_left: float  # the x of the row

    @classmethod
    def of(cls, row: TranscriptRow, hit: Hit, corner: QPointF) -> MessageHit:
        at, rect = RowTarget(row, hit.target), hit.rect.translated(corner)
        return cls(at, rect, hit.name, hit.tip, corner.x())


@dataclass(frozen=True, slots=True)
class RowHits:
    """A row with its rectangle in the message and its links and buttons."""

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
    unfinished: dict[TranscriptRow, None]  # rows that need idle work; rows add themselves

    def selected_in(self, row: TranscriptRow, ordinal: int) -> Range | None:
        """Return the selected range of a row's text, or None."""
        selected, length = self.selected, len(row.text)
        if selected is None or not selected.start.row <= ordinal <= selected.end.row:
            return None
        start = selected.start.offset if selected.start.row == ordinal else 0
        end = min(length, selected.end.offset if selected.end.row == ordinal else length)
        return Range(start, end) if start < end else None


@dataclass(frozen=True, slots=True)
class Released:
    """The size of a message whose rows were dropped; the height is exact at that width."""

    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Spot:
    """A point in the coordinates of a message."""

    message: int  # index in the transcript
    x: float
    y: float


def target_in(row: TranscriptRow, at: RowTarget | None) -> Target | None:
    return at.target if at is not None and at.row is row else None
