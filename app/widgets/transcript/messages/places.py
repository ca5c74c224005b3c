"""Values about places in a message: text boundaries, selections, hits, what to paint."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainter

from app.widgets.transcript.rows.flow import Range
from app.widgets.transcript.rows.row import Hit, Target, TranscriptRow

BODY = 1_000_000  # added to the place of a row of the message proper; rows before are reasoning
END = 2 * BODY


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A character boundary in a message: a row that has text, counted stably, and an offset."""

    row: int
    offset: int


@dataclass(frozen=True, slots=True)
class TextSections:
    """The rows of a message that have text, as ranges of their indices.

    An ordinal names a row for as long as the text lasts: it is the index in the reasoning, or BODY
    plus the index in the body. Indices move when a row appears above the text.
    """

    reasoning: range = range(0)
    body: range = range(0)

    def has_text(self, index: int) -> bool:
        return index in self.reasoning or index in self.body

    def ordinal(self, index: int) -> int:
        """Return the ordinal of a row with text."""
        if index < self.body.start:
            return index - self.reasoning.start
        return BODY + index - self.body.start

    def index(self, ordinal: int) -> int:
        """Return the index that the row with an ordinal has, or would have."""
        if ordinal < BODY:
            return self.reasoning.start + ordinal
        return self.body.start + ordinal - BODY


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text: where it starts, and its y."""

    place: Place
    y: int


@dataclass(frozen=True, slots=True)
class PlaceRange:
    """What of a message is selected: [start, end)."""

    start: Place
    end: Place


@dataclass(frozen=True, slots=True)
class RowTarget:
    """A target and the row that it is in."""

    row: TranscriptRow
    target: Target


@dataclass(frozen=True, slots=True)
class MessageHit:
    """A hit in message coordinates."""

    at: RowTarget
    rect: QRectF
    name: str
    tip: str
    row_left: float

    @classmethod
    def of(cls, row: TranscriptRow, hit: Hit, corner: QPointF) -> MessageHit:
        at, rect = RowTarget(row, hit.target), hit.rect.translated(corner)
        return cls(at, rect, hit.name, hit.tip, corner.x())


@dataclass(frozen=True, slots=True)
class RowHits:
    """What can be clicked in a row that stands there."""

    row: TranscriptRow
    rect: QRectF
    hits: list[MessageHit]


@dataclass(slots=True)
class MessagePaint:
    """One painting of one message: the painter stands at its top left."""

    painter: QPainter
    top: float
    bottom: float
    selected: PlaceRange | None
    hovered: RowTarget | None
    confirmed: RowTarget | None
    pointed_at: bool  # the mouse is over the message
    unfinished: dict[TranscriptRow, None]

    def selected_in(self, row: TranscriptRow, ordinal: int) -> Range | None:
        """What is selected of the text of a row."""
        selected, length = self.selected, len(row.text)
        if selected is None or not selected.start.row <= ordinal <= selected.end.row:
            return None
        start = selected.start.offset if selected.start.row == ordinal else 0
        end = min(length, selected.end.offset if selected.end.row == ordinal else length)
        return Range(start, end) if start < end else None


@dataclass(frozen=True, slots=True)
class Released:
    """The exact height of a message that keeps nothing else."""

    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Spot:
    """A point in a message's coordinates."""

    message: int
    x: float
    y: float


def target_in(row: TranscriptRow, at: RowTarget | None) -> Target | None:
    return at.target if at is not None and at.row is row else None
