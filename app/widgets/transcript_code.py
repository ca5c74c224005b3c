"""Code blocks of the transcript: header with Save and Copy, coloured lines, sideways scrolling. Main thread.

Height and width follow from counting lines and characters; only visible lines are laid out, and
lexing goes on in idle time or line by line while the block is written.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainterPath, QPen
from typing_extensions import override

from app.theme.icons import Icon
from app.theme.tokens import Radius, Size, Space, TextStyle, Type
from app.viewmodels.blocks import Block, CodeBlock
from app.viewmodels.highlight import (
    MAX_LINE_LEN,
    GrowingHighlighter,
    LinePieces,
    exact_pieces,
)
from app.viewmodels.lexers import Absent, LexerShelf
from app.widgets.transcript_flow import Range, TextFlow, piece_runs
from app.widgets.transcript_look import Look
from app.widgets.transcript_rows import Action, Hit, Idle, Paint, Row, Target
from app.widgets.transcript_sideways import SideScroll
from app.words import commands, transcript as words

IDLE_S = 0.004
_PAD_X = 14
_TAB = "    "
_COPY = Target(Action.COPY_CODE)
_SAVE = Target(Action.SAVE_CODE)
_LABEL = TextStyle(Type.SMALL.size, Type.SMALL.line)


class CodeLines:
    """The lines of a text that grows at its end; overlong ones are cut in pieces."""

    def __init__(self) -> None:
        self.text = ""
        self.starts: list[int] = [0]
        self.cut = False  # lines shown are not the lines of the text

    def __len__(self) -> int:
        return len(self.starts)

    def grow(self, text: str) -> int:
        """Take the whole text, which the last one is a start of; return the first changed line."""
        hard_start = self.text.rfind("\n") + 1
        first = bisect_right(self.starts, hard_start) - 1
        del self.starts[first:]
        self.text = text
        while True:
            end = text.find("\n", hard_start)
            line_end = len(text) if end < 0 else end
            self.starts += range(hard_start, max(line_end, hard_start + 1), MAX_LINE_LEN)
            self.cut |= line_end - hard_start > MAX_LINE_LEN
            if end < 0:
                return first
            hard_start = end + 1

    def line(self, number: int) -> str:
        start = self.starts[number]
        end = self.starts[number + 1] if number + 1 < len(self.starts) else len(self.text)
        return self.text[start:end].removesuffix("\n")

    def line_at(self, position: int) -> int:
        return bisect_right(self.starts, position) - 1


@dataclass(frozen=True, slots=True)
class _Button:
    """A word with an icon in the header, and where they may be clicked."""

    target: Target
    label: str
    icon: Icon
    tip: str
    rect: QRectF


class CodeColors:
    """Pieces of the lines of a block: provisional while it is open, exact some time after."""

    def __init__(self, shelf: LexerShelf, block: CodeBlock) -> None:
        self._shelf = shelf
        self._name = block.language
        self._growing: GrowingHighlighter | None = None
        self._lexing: Iterator[LinePieces] | None = None
        self._exact: list[LinePieces] = []
        self.done = not block.language

    def grow(self, block: CodeBlock) -> None:
        """Colour what an open block has got since."""
        language = self._shelf.language(self._name)
        if isinstance(language, Absent):
            return
        if self._growing is None:
            self._growing = GrowingHighlighter(language)
        self._growing.update(block.text)

    def advance(self, block: CodeBlock) -> Idle:
        """Go on for some milliseconds."""
        if self.done:
            return Idle.DONE
        language = self._shelf.language(self._name)
        if isinstance(language, Absent):
            self.done = language is Absent.UNKNOWN
            return Idle.DONE if self.done else Idle.WAITING
        if not block.closed:
            was_plain = self._growing is None
            self.grow(block)
            return Idle.CHANGED if was_plain else Idle.DONE
        if self._lexing is None:
            self._lexing = exact_pieces(language, block.text)
        return self._lex()

    def _lex(self) -> Idle:
        assert self._lexing is not None
        until = perf_counter() + IDLE_S
        for pieces in self._lexing:
            self._exact.append(pieces)
            if perf_counter() > until:
                return Idle.CHANGED
        self.done, self._growing, self._lexing = True, None, None
        return Idle.CHANGED

    def pieces(self, line: int, text: str) -> LinePieces:
        if self._growing is not None:
            return self._growing.pieces(line, text)
        return self._exact[line] if line < len(self._exact) else ()


class CodeRow(Row):
    """One code block."""

    def __init__(self, look: Look, shelf: LexerShelf, block: CodeBlock) -> None:
        self._look = look
        self._shelf = shelf
        self._code = block
        self._lines = CodeLines()
        self._colors = CodeColors(shelf, block)
        self._scroll = SideScroll(look)
        self._face = look.face(Type.CODE)
        self._metrics = QFontMetricsF(self._face.font)
        self._flows: dict[int, TextFlow] = {}
        self._width = 0
        self._text_width = 0.0
        self._take(block)

    @override
    def measure(self, width: int) -> int:
        self._width = width
        self.num_lines = len(self._lines) + 2
        self.natural_width = width
        self._scroll.fit(round(self._text_width) + 2 * self._pad, width)
        return self._top + len(self._lines) * self._face.line + self._look.px(Space.M)

    @override
    def paint(self, paint: Paint) -> None:
        height = self.measure(self._width)
        self._paint_box(paint, height)
        painter = paint.painter
        painter.save()
        painter.setClipRect(QRectF(1, 0, self._width - 2, height), Qt.ClipOperation.IntersectClip)
        self._paint_lines(paint)
        painter.restore()
        self._scroll.paint(painter, height)
        if not (self._colors.done or self._lines.cut):
            paint.unfinished[self] = None

    @override
    def release(self) -> None:
        self._flows.clear()

    @override
    def hit(self, x: float, y: float) -> Hit | None:
        for button in self._buttons():
            if button.rect.contains(x, y):
                return Hit(button.target, button.rect, button.tip)
        return None

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
        flow = self._flow(number)
        return self._lines.starts[number] + flow.position_at(x - self._left, 0)

    @override
    def line_top(self, position: int) -> int:
        return self._top + self._lines.line_at(position) * self._face.line

    @override
    def end_rect(self) -> QRectF:
        last = len(self._lines) - 1
        end = self._flow(last).end_point().x()
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
    def advance(self) -> Idle:
        progress = self._colors.advance(self._code)
        if progress is Idle.CHANGED:
            self._flows.clear()
        return progress

    @override
    def reveal(self, part: Range) -> None:
        number = self._lines.line_at(part.start)
        flow, start = self._flow(number), self._lines.starts[number]
        end = min(part.end - start, len(flow.text))
        left, right = flow.x_at(part.start - start), flow.x_at(end)
        self._scroll.reveal(left, right + 2 * self._pad)

    @override
    def scroll_sideways(self, pixels: int) -> bool:
        return self._scroll.scroll(pixels)

    @property
    def _pad(self) -> int:
        return self._look.px(_PAD_X)

    @property
    def _left(self) -> int:
        return self._pad - self._scroll.offset

    @property
    def _top(self) -> int:
        return self._look.px(Size.CODE_HEADER) + self._look.px(Space.M)

    def _take(self, block: CodeBlock) -> None:
        self._code = block
        first = self._lines.grow(block.text)
        for number in range(first, len(self._lines)):
            self._text_width = max(self._text_width, self._advance_of(self._lines.line(number)))
            self._flows.pop(number, None)
        if not block.closed and not self._lines.cut:
            self._colors.grow(block)

    def _advance_of(self, line: str) -> float:
        if line.isascii():
            return (len(line) + line.count("\t") * (len(_TAB) - 1)) * self._face.average
        return self._metrics.horizontalAdvance(line.replace("\t", _TAB))

    def _flow(self, number: int) -> TextFlow:
        flow = self._flows.get(number)
        if flow is None:
            line = self._lines.line(number)
            pieces = () if self._lines.cut else self._colors.pieces(number, line)
            ink = self._look.colors.syntax.default
            runs = piece_runs(self._look, pieces)
            flow = TextFlow(self._look, Type.CODE, line, ink=ink, runs=runs)
            flow.wrap(None)
            self._flows[number] = flow
        return flow

    def _paint_lines(self, paint: Paint) -> None:
        first = max(0, int((paint.top - self._top) // self._face.line))
        last = min(len(self._lines) - 1, int((paint.bottom - self._top) // self._face.line))
        for number in range(first, last + 1):
            at = QPointF(self._left, self._top + number * self._face.line)
            start, length = self._lines.starts[number], len(self._lines.line(number))
            self._flow(number).paint(paint.painter, at, *paint.within(start, length))
        for number in [number for number in self._flows if not first <= number <= last]:
            del self._flows[number]

    def _buttons(self, *, copied: bool = False) -> list[_Button]:
        """From the right."""
        copy = (commands.COPIED, Icon.CHECK) if copied else (commands.COPY, Icon.COPY)
        header, width = self._look.px(Size.CODE_HEADER), self._look.px(84)
        last = QRectF(self._width - width - 2, 2, width, header - 4)
        return [
            _Button(_COPY, *copy, words.COPY_CODE, last),
            _Button(_SAVE, words.SAVE, Icon.DOWNLOAD, words.SAVE_TIP, last.translated(-width, 0)),
        ]

    def _paint_box(self, paint: Paint, height: int) -> None:
        colors, painter = self._look.colors, paint.painter
        box = QRectF(0.5, 0.5, self._width - 1, height - 1)
        path = QPainterPath()
        path.addRoundedRect(box, Radius.CODE, Radius.CODE)
        painter.fillPath(path, QColor(colors.code_background))
        header = self._look.px(Size.CODE_HEADER)
        painter.save()
        painter.setClipPath(path, Qt.ClipOperation.IntersectClip)
        painter.fillRect(QRectF(0, 0, self._width, header), QColor(colors.code_header))
        painter.restore()
        painter.setPen(QPen(QColor(colors.hairline), 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPath(path)
        self._paint_header(paint, header)

    def _paint_header(self, paint: Paint, header: int) -> None:
        colors, painter = self._look.colors, paint.painter
        face = self._look.face(_LABEL)
        painter.setFont(face.font)
        painter.setPen(QColor(colors.secondary))
        top = (header - face.line) / 2
        buttons = self._buttons(copied=paint.confirmed == _COPY)
        room = buttons[-1].rect.left() - self._pad
        elide = Qt.TextElideMode.ElideRight
        name = painter.fontMetrics().elidedText(self._code.language, elide, int(max(0, room)))
        painter.drawText(QPointF(self._pad, top + face.baseline), name)
        size = self._look.px(15)
        for button in buttons:
            is_lit = button.target in (paint.hovered, paint.confirmed)
            ink = colors.text if is_lit else colors.secondary
            painter.setPen(QColor(ink))
            width = painter.fontMetrics().horizontalAdvance(button.label)
            x = button.rect.right() - self._look.px(Space.M) - width
            painter.drawText(QPointF(x, top + face.baseline), button.label)
            icon = QRectF(x - size - Space.XS, (header - size) / 2, size, size)
            self._look.icons.paint(painter, button.icon, ink, icon)
