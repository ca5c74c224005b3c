"""Rows: what a transcript is made of, and the plain ones (text, rule, notes). Main thread.

A row is measured, painted and hit by itself, in its own coordinates. Rows are cheap until they
are measured; release() drops what is expensive, heights stay.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter
from typing_extensions import override

from app.theme.tokens import Space, TextStyle
from app.viewmodels.blocks import LINE_BREAK, Block, SourceRange, TextSpan
from app.widgets.transcript.rows.flow import Link, Range, TextFlow, all_within, within
from app.widgets.transcript.rows.inset import Inset
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.spans import SpanText
from app.words import transcript as words

MAX_LAYOUTS = 150
CARET_WIDTH = 9
CARET_HEIGHT = 18


class RowAction(Enum):
    """What a click can do."""

    COPY_MESSAGE = auto()
    COPY_CODE = auto()
    TOGGLE_WRAP = auto()
    SAVE_CODE = auto()
    REGENERATE = auto()
    EDIT = auto()
    PREVIOUS_VERSION = auto()
    NEXT_VERSION = auto()
    RETRY = auto()
    CONTINUE = auto()
    STOP = auto()
    DELETE = auto()
    TOGGLE_THINKING = auto()
    TOGGLE_FOLD = auto()
    TOGGLE_DETAILS = auto()
    COPY_DETAILS = auto()
    OPEN_LINK = auto()
    EXPLAIN = auto()  # the tooltip says it all


class IdleResult(Enum):
    """What a row did with idle time."""

    DONE = auto()  # nothing is left to do
    WAITING = auto()  # ask again
    CHANGED = auto()  # paint again


@dataclass(frozen=True, slots=True)
class Target:
    """Something in a row that a click acts on."""

    action: RowAction
    link: str = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """A target, where it is in its row, what it is called, and what its tooltip says."""

    target: Target
    rect: QRectF
    name: str = ""
    tip: str = ""

    def translated(self, x: float, y: float) -> Hit:
        return replace(self, rect=self.rect.translated(x, y))


@dataclass(slots=True)
class Paint:
    """One painting of one row: the painter stands at the row's top left."""

    painter: QPainter
    top: float  # the part of the row that is visible
    bottom: float
    ground: str  # the colour that it lies on
    selected: Range | None = None
    found: Sequence[Range] = ()  # what the reader looks for
    hovered: Target | None = None
    confirmed: Target | None = None  # was just clicked and says so
    actions_shown: bool = True
    unfinished: dict[TranscriptRow, None] = field(
        default_factory=dict["TranscriptRow", None]
    )  # want idle time

    def within(self, start: int, length: int) -> tuple[Range | None, list[Range]]:
        """What is selected and what is found of the characters from start on, counted from there."""
        selected = None if self.selected is None else within(self.selected, start, length)
        return selected, all_within(self.found, start, length)


class TranscriptRow:
    """The least row: no text, nothing to click."""

    gap: int = 0  # empty pixels above
    height: int = 0  # as measured, or estimated
    width: int = -1  # that it was measured at
    inset: Inset | None = None  # bars and markers beside it
    source: SourceRange | None = None  # where its text comes from, if all of it comes from there
    num_lines: int = 1  # of text, once measured
    natural_width: float = 0.0  # the width it needs, once measured
    is_rtl: bool = False  # it stands at the right, once measured

    @property
    def indent(self) -> int:
        """Width of the row's inset."""
        return 0 if self.inset is None else self.inset.width

    def width_within(self, outer: int) -> int:
        """Return the width that is left to the row beside its inset."""
        return outer if self.inset is None else max(1, outer - self.inset.width)

    def estimate(self, width: int) -> int:
        """Return about how high the row is, without laying it out."""
        return self.measure(width)

    def measure(self, width: int) -> int:
        """Lay out and return the height."""
        raise NotImplementedError

    def paint(self, paint: Paint) -> None:
        raise NotImplementedError

    def release(self) -> None:
        """Drop layouts."""

    def hits(self) -> Sequence[Hit]:
        """What can be clicked in it, in the order of reading."""
        return ()

    def hit(self, x: float, y: float) -> Hit | None:
        """What a click at a point acts on."""
        return next((hit for hit in self.hits() if hit.rect.contains(x, y)), None)

    @property
    def group(self) -> str:
        """What it is called as a whole, if its hits belong to it rather than to the text."""
        return ""

    @property
    def is_waiting(self) -> bool:
        """Whether a picture in it is still being made."""
        return False

    @property
    def is_stale(self) -> bool:
        """Whether it has become another since it was measured: such a picture has come, or it wraps."""
        return False

    @property
    def text(self) -> str:
        """The text that can be selected; none by default."""
        return ""

    @property
    def file_name(self) -> str:
        """What a file of the text might be called."""
        return words.TEXT_FILE

    def copied(self, part: Range) -> str:
        """What a copy of a part of the text holds."""
        return self.text[part.start : part.end].replace(LINE_BREAK, "\n")

    def position_at(self, x: float, y: float) -> int:  # noqa: ARG002 - part of the interface
        return 0

    def line_top(self, position: int) -> int:  # noqa: ARG002 - part of the interface
        """Return the y of the line that holds a position."""
        return 0

    def end_rect(self) -> QRectF:
        """Return the height of the last line of text, at the end of its last glyph."""
        return QRectF(0, 0, 0, self.height)

    def update(self, block: Block) -> bool:  # noqa: ARG002 - part of the interface
        """Take a longer version of the same block; False if a new row must be made."""
        return False

    def advance(self) -> IdleResult:
        """Use a few idle milliseconds."""
        return IdleResult.DONE

    def reveal(self, part: Range) -> None:
        """Scroll the content sideways to where a part of the text is."""

    def toggle_wrap(self) -> None:
        """Wrap the lines of code, or let them be as long as they are."""

    def scroll_sideways(self, pixels: int) -> bool:  # noqa: ARG002 - part of the interface
        """Scroll the content; False if it fits."""
        return False


class LayoutCache:
    """Keeps the layouts of the rows used last, drops the others'."""

    def __init__(self, size: int = MAX_LAYOUTS) -> None:
        self._size = size
        self._rows: OrderedDict[TranscriptRow, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._rows)

    def touch(self, row: TranscriptRow) -> None:
        self._rows[row] = None
        self._rows.move_to_end(row)
        if len(self._rows) > self._size:
            self._rows.popitem(last=False)[0].release()

    def clear(self) -> None:
        self._rows.clear()


class TextRow(TranscriptRow):
    """A paragraph, a heading, or part of a very long paragraph."""

    def __init__(self, look: Look, style: TextStyle, spans: Sequence[TextSpan], ink: str) -> None:
        self._look = look
        self._style = style
        self._spans = spans
        self._ink = ink
        self._content = SpanText(look, style, spans)
        self._flow: TextFlow | None = None
        self._width = 0
        self.max_lines: int | None = None

    @override
    def estimate(self, width: int) -> int:
        face = self._look.face(self._style)
        per_line = max(1, int(width / face.average))
        num_lines = 1 + len(self.text) // per_line + self.text.count(LINE_BREAK)
        return min(num_lines, self.max_lines or num_lines) * face.line

    @override
    def measure(self, width: int) -> int:
        if self.is_stale:
            self._content = SpanText(self._look, self._style, self._spans)
            self._flow = None
        flow = self._laid_out(width)
        self.num_lines = flow.num_lines
        self.natural_width = flow.natural_width
        self.is_rtl = flow.is_rtl
        return flow.height

    @override
    def paint(self, paint: Paint) -> None:
        self._content.ask_again()
        flow = self._laid_out(self._width)
        flow.paint(paint.painter, QPointF(0, 0), paint.selected, paint.found)

    @override
    def release(self) -> None:
        self._flow = None

    @override
    def hits(self) -> Sequence[Hit]:
        if not any(span.link for span in self._spans):
            return ()
        return [link_hit(link) for link in self._laid_out(self._width).links]

    @override
    def hit(self, x: float, y: float) -> Hit | None:
        link = self._laid_out(self._width).link_at(x, y)
        return None if link is None else link_hit(link)

    @property
    @override
    def is_waiting(self) -> bool:
        return self._content.is_waiting

    @property
    @override
    def is_stale(self) -> bool:
        return self._content.is_stale

    @property
    @override
    def text(self) -> str:
        return self._content.text

    @override
    def copied(self, part: Range) -> str:
        return self._content.source(part)

    @override
    def position_at(self, x: float, y: float) -> int:
        return self._laid_out(self._width).position_at(x, y)

    @override
    def line_top(self, position: int) -> int:
        return self._laid_out(self._width).line_top(position)

    @override
    def end_rect(self) -> QRectF:
        end = self._laid_out(self._width).end_point()
        return QRectF(end.x(), end.y(), 0, self._look.face(self._style).line)

    def _laid_out(self, width: int) -> TextFlow:
        if self._flow is None or width != self._width:
            if self._flow is None:
                self._flow = self._content.flow(self._ink)
            self._flow.wrap(width, max_lines=self.max_lines)
            self._width = width
        return self._flow


def link_hit(link: Link) -> Hit:
    """What a click on a link acts on."""
    return Hit(Target(RowAction.OPEN_LINK, link.address), link.rect, link.text, link.address)


class RuleRow(TranscriptRow):
    """A thematic break."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._width = 0

    @override
    def measure(self, width: int) -> int:
        self._width = width
        self.natural_width = width
        return self._look.px(Space.L)

    @override
    def paint(self, paint: Paint) -> None:
        y = self._look.px(Space.L) // 2
        paint.painter.fillRect(QRectF(0, y, self._width, 1), QColor(self._look.colors.hairline))


def paint_caret(painter: QPainter, look: Look, row: TranscriptRow) -> None:
    """Paint the mark that text is still coming: 2 px after the last glyph of a row."""
    width, height, end = look.px(CARET_WIDTH), look.px(CARET_HEIGHT), row.end_rect()
    x = end.x() - Space.HAIR - width if row.is_rtl else end.x() + Space.HAIR
    caret = QRectF(x, end.center().y() - height / 2, width, height)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(look.colors.text))
    painter.drawRoundedRect(caret, Space.HAIR, Space.HAIR)
