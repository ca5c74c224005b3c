"""The base class of rows, text rows, and the cache of line layouts. Main thread.

A message is a pile of rows: paragraphs, code blocks, tables, buttons. A row is measured, painted
and hit-tested in its own coordinates, and has no knowledge of its position. The lines of a row are
laid out by measure() or paint() and take memory; release() drops them, and keeps the height.
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

MAX_LAYOUTS = 150  # rows in the layout cache
CARET_WIDTH = 9
CARET_HEIGHT = 18


class RowAction(Enum):
    """The actions of links and buttons."""

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
    EXPLAIN = auto()  # no action, only a tooltip


class IdleResult(Enum):
    """The result of TranscriptRow.advance()."""

    DONE = auto()  # nothing is left to do
    WAITING = auto()  # a result of another thread is missing: call again later
    CHANGED = auto()  # the row must be repainted, and advance() called again


@dataclass(frozen=True, slots=True)
class Target:
    """The identity of a link or button in a row."""

    action: RowAction
    link: str = ""  # address, for OPEN_LINK


@dataclass(frozen=True, slots=True)
class Hit:
    """A link or button, with its rectangle in the row, its name and its tooltip."""

    target: Target
    rect: QRectF
    name: str = ""
    tip: str = ""

    def translated(self, x: float, y: float) -> Hit:
        return replace(self, rect=self.rect.translated(x, y))


@dataclass(slots=True)
class Paint:
    """A request to paint a row. The painter's origin is the top left of the row."""

    painter: QPainter
    top: float  # only the part between top and bottom needs painting
    bottom: float
    ground: str  # colour behind the row
    selected: Range | None = None
    found: Sequence[Range] = ()  # occurrences of the searched text
    hovered: Target | None = None
    confirmed: Target | None = None  # button that shows "Copied" for a moment
    actions_shown: bool = True  # False hides the buttons of the message
    unfinished: dict[TranscriptRow, None] = field(
        default_factory=dict["TranscriptRow", None]
    )  # rows add themselves to get idle time

    def within(self, start: int, length: int) -> tuple[Range | None, list[Range]]:
        """Return the selected and the found ranges of a part of the text, relative to its start."""
        selected = None if self.selected is None else within(self.selected, start, length)
        return selected, all_within(self.found, start, length)


class TranscriptRow:
    """The base class of rows: a row without text, links or buttons."""

    gap: int = 0  # empty pixels above the row
    height: int = 0  # measured, or estimated while width is -1
    width: int = -1  # width at which the row was measured; -1 if it must be measured
    inset: Inset | None = None  # bars and markers beside the row
    source: SourceRange | None = None  # Markdown source of the row, if it is one range
    # Results of measure():
    num_lines: int = 1
    natural_width: float = 0.0  # width that the content needs
    is_rtl: bool = False  # True if the row is aligned at the right

    @property
    def indent(self) -> int:
        """Width of the row's inset."""
        return 0 if self.inset is None else self.inset.width

    def width_within(self, outer: int) -> int:
        """Return the width of the row without its inset, if both together are `outer` wide."""
        return outer if self.inset is None else max(1, outer - self.inset.width)

    def estimate(self, width: int) -> int:
        """Return the estimated height, without a line layout."""
        return self.measure(width)

    def measure(self, width: int) -> int:
        """Lay out the row at a width and return its height."""
        raise NotImplementedError

    def paint(self, paint: Paint) -> None:
        raise NotImplementedError

    def release(self) -> None:
        """Drop the line layout; paint() makes it again."""

    def hits(self) -> Sequence[Hit]:
        """Return the links and buttons in reading order."""
        return ()

    def hit(self, x: float, y: float) -> Hit | None:
        """Return the link or button at a point."""
        return next((hit for hit in self.hits() if hit.rect.contains(x, y)), None)

    @property
    def group(self) -> str:
        """Name for screen readers of a row whose buttons form a group, else an empty string."""
        return ""

    @property
    def is_waiting(self) -> bool:
        """True while a formula of the row is being typeset."""
        return False

    @property
    def is_stale(self) -> bool:
        """True if the row must be measured again: a formula arrived, or wrapping was switched."""
        return False

    @property
    def text(self) -> str:
        """Text that can be selected."""
        return ""

    @property
    def file_name(self) -> str:
        """Suggested name for a file with the text."""
        return words.TEXT_FILE

    def copied(self, part: Range) -> str:
        """Return the text to copy for a selected part."""
        return self.text[part.start : part.end].replace(LINE_BREAK, "\n")

    def position_at(self, x: float, y: float) -> int:  # noqa: ARG002 - part of the interface
        return 0

    def line_top(self, position: int) -> int:  # noqa: ARG002 - part of the interface
        """Return the y of the line with a text position."""
        return 0

    def end_rect(self) -> QRectF:
        """Return a rectangle of no width at the end of the last line, as high as the line."""
        return QRectF(0, 0, 0, self.height)

    def update(self, block: Block) -> bool:  # noqa: ARG002 - part of the interface
        """Replace the content by a longer version; return False if a new row must be made."""
        return False

    def advance(self) -> IdleResult:
        """Do a few milliseconds of idle work, such as colouring code."""
        return IdleResult.DONE

    def reveal(self, part: Range) -> None:
        """Scroll the content sideways until a part of the text is visible."""

    def toggle_wrap(self) -> None:
        """Switch the wrapping of long lines of code."""

    def scroll_sideways(self, pixels: int) -> bool:  # noqa: ARG002 - part of the interface
        """Scroll the content sideways; return False if all of it is visible."""
        return False


class LayoutCache:
    """The rows with a line layout, least recently used first. Evicted rows are released."""

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
    """A paragraph, a heading, or a part of a very long paragraph."""

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
    """Return the hit for a link."""
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
    """Paint the caret of a streaming answer, 2 px after the last glyph of a row."""
    width, height, end = look.px(CARET_WIDTH), look.px(CARET_HEIGHT), row.end_rect()
    x = end.x() - Space.HAIR - width if row.is_rtl else end.x() + Space.HAIR
    caret = QRectF(x, end.center().y() - height / 2, width, height)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(look.colors.text))
    painter.drawRoundedRect(caret, Space.HAIR, Space.HAIR)
