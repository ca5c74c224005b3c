"""Wrapped text with a fixed line height: lay out, paint, hit-test, select. Main thread.

The one user of QTextLayout. Text is plain to Qt: looks come from formats alone. Positions are
Python's; Qt's UTF-16 positions do not leave this module.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QTextCharFormat, QTextLayout, QTextLine, QTextOption

from app.theme.tokens import Space, TextStyle
from app.viewmodels.blocks import LINE_BREAK, Mark, Span
from app.viewmodels.highlight import LinePieces
from app.widgets.transcript_look import Look

_BOX_RADIUS = 4
_BOX_PAD = 2
_TAB_CHARACTERS = 4
_LAST_OF_PLANE = "\uffff"


@dataclass(frozen=True, slots=True)
class Range:
    """Characters [start, end)."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Run:
    """Characters [start, end) that look different, lead somewhere or lie on a box."""

    start: int
    end: int
    format: QTextCharFormat
    link: str = ""
    boxed: bool = False


def span_runs(look: Look, style: TextStyle, spans: Iterable[Span]) -> list[Run]:
    """Return the runs of a paragraph."""
    runs: list[Run] = []
    start = 0
    for span in spans:
        end = start + len(span.text)
        if span.marks or span.link:
            made = look.span_format(style, span.marks, link=bool(span.link))
            runs.append(Run(start, end, made, span.link, Mark.CODE in span.marks))
        start = end
    return runs


def piece_runs(look: Look, pieces: LinePieces) -> list[Run]:
    """Return the runs of a line of code."""
    return [
        Run(piece.start, piece.start + piece.length, look.code_format(piece.ink))
        for piece in pieces
    ]


class TextFlow:
    """Text in one style and one colour, with runs that differ, wrapped to a width."""

    def __init__(
        self, look: Look, style: TextStyle, text: str, *, ink: str, runs: Sequence[Run] = ()
    ) -> None:
        self.text = text
        self.height: int = 0
        self.natural_width: float = 0.0
        self.num_lines: int = 0
        self.complete = True  # False if lines were cut off
        self._look = look
        self._face = look.face(style)
        self._ink = ink
        self._runs = runs
        self._units = _Units(text)
        self._boxes: list[QRectF] = []
        self._layout = QTextLayout(text, self._face.font)
        self._layout.setCacheEnabled(True)
        self._layout.setFormats([self._qt_range(run.start, run.end, run.format) for run in runs])

    def wrap(self, width: float | None, *, max_lines: int | None = None) -> None:
        """Break the text into lines (one if width is None); there is at least one."""
        option = QTextOption()
        mode = QTextOption.WrapMode
        option.setWrapMode(mode.NoWrap if width is None else mode.WrapAtWordBoundaryOrAnywhere)
        option.setTabStopDistance(_TAB_CHARACTERS * self._face.average)
        self._layout.setTextOption(option)
        self._layout.beginLayout()
        self._add_lines(max(1.0, width or 0.0), max_lines)
        self._layout.endLayout()
        self.height = self.num_lines * self._face.line
        self._boxes = [
            box for run in self._runs if run.boxed for box in self._line_rects(run.start, run.end)
        ]

    def paint(self, painter: QPainter, at: QPointF, selected: Range | None = None) -> None:
        colors = self._look.colors
        for box in self._boxes:
            inset = max(1.0, (box.height() - self._face.font.pixelSize() * 1.4) / 2)
            shape = box.translated(at).adjusted(-_BOX_PAD, inset, _BOX_PAD, -inset)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(colors.inline_code))
            painter.drawRoundedRect(shape, _BOX_RADIUS, _BOX_RADIUS)
        painter.setPen(QColor(self._ink))
        if selected is None:
            self._layout.draw(painter, at)
            return
        for rect in self._line_rects(selected.start, selected.end):
            painter.fillRect(rect.translated(at), QColor(colors.accent))
        inverse = self._look.ink_format(colors.on_accent)
        self._layout.draw(painter, at, [self._qt_range(selected.start, selected.end, inverse)])

    def position_at(self, x: float, y: float) -> int:
        """Return the character boundary that is nearest."""
        count = self._layout.lineCount()
        if count == 0:
            return 0
        line = self._layout.lineAt(int(max(0.0, min(y // self._face.line, count - 1))))
        position = self._units.to_python(line.xToCursor(x))
        end = self._units.to_python(line.textStart() + line.textLength())
        at_break = position == end and self.text[end - 1 : end] == LINE_BREAK
        return position - 1 if at_break else position

    def line_top(self, position: int) -> int:
        """Return the y of the line that holds a character boundary."""
        line = self._layout.lineForTextPosition(self._units.to_qt(min(position, len(self.text))))
        return line.lineNumber() * self._face.line if line.isValid() else 0

    def link_at(self, x: float, y: float) -> str:
        """Return the link below a point, or nothing."""
        number = int(y // self._face.line)
        if not 0 <= number < self._layout.lineCount():
            return ""
        line = self._layout.lineAt(number)
        if not 0 <= x <= line.naturalTextWidth():
            return ""
        unit = line.xToCursor(x, QTextLine.CursorPosition.CursorOnCharacter)
        position = self._units.to_python(unit)
        return next((run.link for run in self._runs if run.start <= position < run.end), "")

    def end_point(self) -> QPointF:
        """Return where the last glyph ends, at the top of its line."""
        count = self._layout.lineCount()
        if count == 0:
            return QPointF(0, 0)
        width = self._layout.lineAt(count - 1).naturalTextWidth()
        return QPointF(width, (count - 1) * self._face.line)

    def _add_lines(self, width: float, max_lines: int | None) -> None:
        number, natural = 0, 0.0
        self.complete = False
        while number != max_lines:
            line = self._layout.createLine()
            if not line.isValid():
                self.complete = True
                break
            line.setLineWidth(width)
            line.setPosition(
                QPointF(0, number * self._face.line + self._face.baseline - line.ascent())
            )
            natural = max(natural, line.naturalTextWidth())
            number += 1
        self.num_lines = max(1, number)
        self.natural_width = natural

    def _line_rects(self, start: int, end: int) -> Iterator[QRectF]:
        """Yield one rectangle for each line that the characters [start, end) touch."""
        first, last = self._units.to_qt(start), self._units.to_qt(end)
        for number in range(self._layout.lineCount()):
            line = self._layout.lineAt(number)
            left = max(first, line.textStart())
            right = min(last, line.textStart() + line.textLength())
            if left < right:
                x, end_x = sorted((_x(line, left), _x(line, right)))
                top = number * self._face.line
                yield QRectF(x, top, max(end_x - x, Space.XS), self._face.line)

    def _qt_range(
        self, start: int, end: int, text_format: QTextCharFormat
    ) -> QTextLayout.FormatRange:
        made = QTextLayout.FormatRange()
        made.start = self._units.to_qt(start)
        made.length = self._units.to_qt(end) - made.start
        made.format = text_format
        return made


class _Units:
    """Positions in a Python string and in Qt's UTF-16, where emoji take two units."""

    def __init__(self, text: str) -> None:
        self._wide = (
            []
            if text.isascii()
            else [at for at, character in enumerate(text) if character > _LAST_OF_PLANE]
        )
        self._wide_units = [at + number for number, at in enumerate(self._wide)]

    def to_qt(self, position: int) -> int:
        return position + bisect_left(self._wide, position)

    def to_python(self, unit: int) -> int:
        return unit - bisect_left(self._wide_units, unit)


def _x(line: QTextLine, position: int) -> float:
    return cast("tuple[float, int]", line.cursorToX(position))[0]
