"""Code blocks of the transcript: coloured lines that scroll sideways or wrap.

Used on the main thread only. A block may have thousands of lines. Its height and width are computed
from the numbers of lines and characters. Only visible lines are laid out: each becomes a
`TextFlow`. `CodeLines` divides the text into shown lines, and `CodeColors` has their colours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainterPath, QPen
from typing_extensions import override

from app.theme.tokens import Radius, Size, Space, Type
from app.viewmodels.blocks import Block, CodeBlock
from app.viewmodels.highlight import LinePieces, Piece
from app.viewmodels.lexer_shelf import Absent, LexerShelf
from app.viewmodels.line_breaks import hanging, line_breaks
from app.widgets.transcript.rows.code_colors import CodeColors
from app.widgets.transcript.rows.code_header import CodeHeader, CodeHeading
from app.widgets.transcript.rows.code_lines import CodeLines, cut_overlong
from app.widgets.transcript.rows.flow import TextFlow, TextRun
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.ranges import Range, within
from app.widgets.transcript.rows.row import (
    Hit,
    IdleResult,
    Paint,
    TranscriptRow,
    between_lines,
)
from app.widgets.transcript.rows.sideways import SideScroll
from app.words import transcript as words

_TAB = "    "
_MIN_COLUMNS = 8  # minimum wrap width in characters, used in a very narrow view


@dataclass(frozen=True, slots=True)
class _ShownLine:
    """A line of code after its layout.

    `indent` is the distance of the line from the left edge of the code, in pixels.
    """

    flow: TextFlow
    indent: float

    def position_at(self, x: float) -> int:
        return self.flow.position_at(x - self.indent, 0)

    def x_at(self, position: int) -> float:
        return self.indent + self.flow.x_at(position)


class CodeRow(TranscriptRow):
    """A code block and its header. The lines of code scroll sideways or wrap.

    `wrapped` is a set of blocks with wrapped lines. Each block is identified by its position in
    the Markdown source. The message owns the set, so that a block stays wrapped when its row is
    dropped and created again.
    """

    def __init__(self, look: Look, shelf: LexerShelf, block: CodeBlock, wrapped: set[int]) -> None:
        self._look = look
        self._shelf = shelf
        self._code = block
        self._wrapped = wrapped
        # Number of characters in a wrapped line; None: do not wrap.
        self._columns: int | None = None
        self._lines = CodeLines()
        self._header = CodeHeader(look)
        self._colors = CodeColors(shelf, block)
        self._scroll = SideScroll(look)
        self._face = look.face(Type.CODE)
        self._metrics = QFontMetricsF(self._face.font)
        # Lines that are laid out. Key: line number. paint() drops the lines that are not visible.
        self._shown: dict[int, _ShownLine] = {}
        self._width = 0
        self._text_width = 0.0  # width of the longest line in pixels
        self._take(block)

    @override
    def measure(self, width: int) -> int:
        self._width = width
        self._break(width)
        self.num_lines = len(self._lines) + 2
        self.natural_width = width
        self._scroll.fit(self._needed if self._columns is None else width, width)
        return self._top + len(self._lines) * self._face.line + self._look.px(Space.M)

    @override
    def paint(self, paint: Paint) -> None:
        height = self.measure(self._width)
        self._paint_box(paint, height)
        painter = paint.painter
        painter.save()
        painter.setClipRect(QRectF(1, 0, self._width - 2, height), Qt.ClipOperation.IntersectClip)
        self._paint_lines(paint)
        ground, below = self._look.colors.code_background, self._look.px(Space.M)
        self._scroll.paint_edges(painter, ground, self._header.height, height - below)
        painter.restore()
        self._scroll.paint(painter, height)
        if not (self._colors.done or self._lines.is_cut):
            paint.unfinished[self] = None

    @override
    def page_breaks(self) -> Sequence[int]:
        return between_lines(range(self._top, self.height, self._face.line)[: len(self._lines)])

    @override
    def release(self) -> None:
        self._shown.clear()

    @override
    def hits(self) -> list[Hit]:
        return self._header.hits(self._heading, self._width)

    @property
    @override
    def group(self) -> str:
        language = self._shelf.language(self._code.language)
        name = self._code.language if isinstance(language, Absent) else language.name
        return words.code_spoken(name, self._lines.num_hard)

    @override
    def toggle_wrap(self) -> None:
        self._wrapped ^= {self._code.source.start}

    @property
    @override
    def is_stale(self) -> bool:
        return self._wraps != (self._columns is not None)

    @property
    @override
    def file_name(self) -> str:
        language = self._shelf.language(self._code.language)
        suffix = "" if isinstance(language, Absent) else language.suffix
        return words.code_file(suffix or ".txt")

    @property
    @override
    def text(self) -> str:
        return self._lines.text

    @override
    def position_at(self, x: float, y: float) -> int:
        number = int((y - self._top) // self._face.line)
        if number < 0:
            return 0
        if number >= len(self._lines):
            return len(self.text)
        return self._lines.starts[number] + self._line(number).position_at(x - self._left)

    @override
    def line_top(self, position: int) -> int:
        return self._top + self._lines.line_at(position) * self._face.line

    @override
    def end_rect(self) -> QRectF:
        last = len(self._lines) - 1
        line = self._line(last)
        end = line.x_at(len(line.flow.text))
        top = self._top + last * self._face.line
        return QRectF(self._left + end, top, 0, self._face.line)

    @override
    def update(self, block: Block) -> bool:
        if not isinstance(block, CodeBlock) or block.language != self._code.language:
            return False
        if not block.text.startswith(self._code.text):
            return False
        self._take(block)
        return True

    @override
    def advance(self) -> IdleResult:
        if self._lines.is_cut:
            return IdleResult.DONE  # lexing such a line takes too long
        progress = self._colors.advance(self._code)
        if progress is IdleResult.CHANGED:
            self._shown.clear()
        return progress

    @override
    def reveal(self, part: Range) -> None:
        number = self._lines.line_at(part.start)
        line, start = self._line(number), self._lines.starts[number]
        end = min(part.end - start, len(line.flow.text))
        left, right = line.x_at(part.start - start), line.x_at(end)
        self._scroll.reveal(left, right + 2 * self._pad)

    @override
    def scroll_sideways(self, pixels: int) -> bool:
        return self._scroll.scroll(pixels)

    @property
    def _pad(self) -> int:
        return self._look.px(Size.CODE_PAD)

    @property
    def _left(self) -> int:
        return self._pad - self._scroll.offset

    @property
    def _top(self) -> int:
        return self._header.height + self._look.px(Space.M)

    @property
    def _needed(self) -> int:
        """Minimum row width, in pixels, at which no line has to be wrapped."""
        return round(self._text_width) + 2 * self._pad

    @property
    def _wraps(self) -> bool:
        return self._look.on_paper or self._code.source.start in self._wrapped

    @property
    def _heading(self) -> CodeHeading:
        offers_wrap = self._wraps or self._needed > self._width
        wraps = self._wraps if offers_wrap else None
        return CodeHeading(self._code.language, self._lines.num_hard, wraps)

    def _take(self, block: CodeBlock) -> None:
        self._code = block
        self._note_lines(self._lines.grow(block.text))
        if not block.closed and not self._lines.is_cut:
            self._colors.grow(block)

    def _note_lines(self, first: int) -> None:
        """Measure the lines from number `first` to the end, and drop their old layouts."""
        for number in range(first, len(self._lines)):
            self._text_width = max(self._text_width, self._advance_of(self._lines.line(number)))
        self._shown = {number: line for number, line in self._shown.items() if number < first}

    def _break(self, width: int) -> None:
        """Divide the text into lines again if the wrap setting or the number of columns changed."""
        columns = None
        if self._wraps:
            columns = max(_MIN_COLUMNS, int((width - 2 * self._pad) / self._face.average))
        if columns != self._columns:
            self._columns = columns
            breaker = cut_overlong if columns is None else partial(self._wrap, columns)
            self._lines.rebreak(breaker)
            self._text_width = 0.0
            self._note_lines(0)

    def _wrap(self, columns: int, line: str) -> Iterable[int]:
        """Wrap a line and return the start position of each piece."""
        if line.isascii():
            return line_breaks(line, columns)
        # Non-ASCII characters may come from a fallback font and differ in width, so only Qt can
        # break this line correctly.
        flow = TextFlow(self._look, Type.CODE, line, ink=self._look.colors.syntax.default)
        average = self._face.average
        flow.wrap(columns * average, hanging=hanging(line, columns) * average)
        return flow.line_starts

    def _advance_of(self, line: str) -> float:
        if line.isascii():
            return (len(line) + line.count("\t") * (len(_TAB) - 1)) * self._face.average
        return self._metrics.horizontalAdvance(line.replace("\t", _TAB))

    def _line(self, number: int) -> _ShownLine:
        line = self._shown.get(number)
        if line is None:
            ink = self._look.colors.syntax.default
            runs = _piece_runs(self._look, self._pieces(number))
            flow = TextFlow(self._look, Type.CODE, self._lines.line(number), ink=ink, runs=runs)
            flow.wrap(None)
            line = self._shown[number] = _ShownLine(flow, self._indent_of(number))
        return line

    def _indent_of(self, number: int) -> float:
        lines, start = self._lines, self._lines.starts[number]
        hard = lines.hard_at(start)
        if self._columns is None or start == lines.hard_start(hard):
            return 0
        return hanging(lines.hard_line(hard), self._columns) * self._face.average

    def _pieces(self, number: int) -> LinePieces:
        """Return the coloured pieces of a shown line.

        A line of the text may be cut into several shown lines. Positions in the result count from
        the start of the shown line.
        """
        lines = self._lines
        if lines.is_cut:
            return ()
        hard = lines.hard_at(lines.starts[number])
        whole = self._colors.pieces(hard, lines.hard_line(hard))
        start = lines.starts[number] - lines.hard_start(hard)
        length = len(lines.line(number))
        if not start and length == len(lines.hard_line(hard)):
            return whole
        shown: list[Piece] = []
        for piece in whole:
            part = within(Range(piece.start, piece.start + piece.length), start, length)
            if part is not None:
                shown.append(Piece(part.start, part.end - part.start, piece.ink))
        return tuple(shown)

    def _paint_lines(self, paint: Paint) -> None:
        first = max(0, int((paint.top - self._top) // self._face.line))
        last = min(len(self._lines), ceil((paint.bottom - self._top) / self._face.line)) - 1
        for number in range(first, last + 1):
            line = self._line(number)
            at = QPointF(self._left + line.indent, self._top + number * self._face.line)
            marks = paint.within(self._lines.starts[number], len(line.flow.text))
            line.flow.paint(paint.painter, at, *marks)
        for number in [number for number in self._shown if not first <= number <= last]:
            del self._shown[number]

    def _paint_box(self, paint: Paint, height: int) -> None:
        colors, painter = self._look.colors, paint.painter
        box = QRectF(0.5, 0.5, self._width - 1, height - 1)
        path = QPainterPath()
        path.addRoundedRect(box, Radius.CODE, Radius.CODE)
        painter.fillPath(path, QColor(colors.code_background))
        header = self._header.height
        painter.save()
        painter.setClipPath(path, Qt.ClipOperation.IntersectClip)
        painter.fillRect(QRectF(0, 0, self._width, header), QColor(colors.code_header))
        painter.restore()
        painter.setPen(QPen(QColor(colors.hairline), 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPath(path)
        self._header.paint(paint, self._heading, self._width)


def _piece_runs(look: Look, pieces: LinePieces) -> list[TextRun]:
    """Return one run for each coloured piece of a line of code."""
    return [
        TextRun(piece.start, piece.start + piece.length, look.code_format(piece.ink))
        for piece in pieces
    ]
