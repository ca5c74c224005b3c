"""Lay out, paint, hit-test and select wrapped text. Used on the main thread only.

A `TextFlow` is one paragraph, heading, table cell or line of code. It is a wrapper around
QTextLayout, which no other module of the transcript uses. Qt gets plain text without markup. Format
ranges add bold, links and colours. All lines have the same height, except that a line with a tall
formula is higher.

Positions are indexes of Python characters. Qt counts UTF-16 units. This module converts the
positions, so callers never see a UTF-16 position. Coordinates are in pixels, relative to the top
left corner of the text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import cast

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QPainter,
    QTextCharFormat,
    QTextLayout,
    QTextLine,
    QTextOption,
)

from app.theme.tokens import Space, TextStyle
from app.viewmodels.blocks import LINE_BREAK
from app.viewmodels.direction import has_right_to_left, is_right_to_left
from app.widgets.transcript.rows.formula_insets import FormulaInset, FormulaInsets
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.ranges import Range, overlap
from app.widgets.transcript.rows.utf16 import Utf16Units

_BOX_RADIUS = 4
_BOX_PAD = 2  # pixels between inline code and the left or right edge of the box behind it
_BOX_EMS = 1.4  # maximum height of the box behind inline code, in font sizes


@dataclass(frozen=True, slots=True)
class TextRun:
    """The format of the characters [start, end), and optionally a link or a background box."""

    start: int
    end: int
    format: QTextCharFormat
    link: str = ""  # address of the link; empty if the characters are not a link
    boxed: bool = False  # True to paint a rounded box behind the text, as for inline code


@dataclass(frozen=True, slots=True)
class FlowLink:
    """A link in a flow: its address, its visible text and its rectangle."""

    address: str
    text: str
    rect: QRectF  # rectangle of the link; only of its first line if the link wraps


@dataclass(frozen=True, slots=True)
class _Band:
    """The vertical position and height of one line of the flow, in pixels."""

    top: int
    height: int
    baseline: float  # distance of the baseline from the top of the flow, in pixels


class TextFlow:
    """A wrapped text with one style and one default colour. A TextRun formats a part of the text.

    The text never changes. Call wrap() before any other method, and again when the width changes.
    Before wrap() there are no lines. Most methods then return 0 or nothing.
    """

    def __init__(
        self,
        look: Look,
        style: TextStyle,
        text: str,
        *,
        ink: str,
        runs: Sequence[TextRun] = (),
        insets: Sequence[FormulaInset] = (),
    ) -> None:
        self.text = text
        self.height: int = 0  # total height of all lines; 0 before wrap()
        self.natural_width: float = 0.0  # width of the longest line; 0 before wrap()
        self.num_lines: int = 0
        self._look = look
        self._face = look.face(style)  # font, line height and baseline of the style
        self._ink = ink
        self._runs = runs
        self._insets = FormulaInsets(look, self._face, insets)
        shown = self._insets.with_blanks(text)
        # True if the paragraph is right-to-left text, which is aligned at the right edge.
        self.is_rtl = is_right_to_left(shown)
        # True if the text has right-to-left characters. A range of characters may then appear as
        # several separate pieces on the screen.
        self._is_bidi = has_right_to_left(shown)
        # The UTF-16 units of `shown`, which Qt lays out. The units of `text` differ if a formula
        # contains characters of two units.
        self._units = Utf16Units(shown)
        self._boxes: list[QRectF] = []  # rectangles of the rounded backgrounds of boxed runs
        self._bands: list[_Band] = []  # position and height of each line
        self._layout = QTextLayout(shown, self._face.font)
        self._layout.setCacheEnabled(True)

    def wrap(
        self, width: float | None, *, max_lines: int | None = None, hanging: float = 0.0
    ) -> None:
        """Break the text into lines. If `width` is None, put the whole text on one line.

        An empty text has one line. Text after `max_lines` lines is not shown. The second and later
        lines are narrower by `hanging` pixels, but begin at x = 0. A caller that passes `hanging`
        indents these lines itself and reads only line_starts.

        Right-to-left text is aligned at the right edge of `width`. If `width` is None, there is no
        such edge, and the text begins at x = 0. A formula that is wider than `width` is shrunk:
        wrap() changes the scale of its Drawing.
        """
        option = QTextOption()
        if self.is_rtl and width is not None:
            option.setTextDirection(Qt.LayoutDirection.RightToLeft)
            option.setAlignment(Qt.AlignmentFlag.AlignRight)
        else:
            option.setTextDirection(Qt.LayoutDirection.LeftToRight)
        mode = QTextOption.WrapMode
        option.setWrapMode(mode.NoWrap if width is None else mode.WrapAtWordBoundaryOrAnywhere)
        option.setTabStopDistance(self._face.tab)
        self._layout.setTextOption(option)
        formats = [(run.start, run.end, run.format) for run in self._runs]
        formats += self._insets.fit(width)
        self._layout.setFormats([self._qt_range(*one) for one in formats])
        self._layout.beginLayout()
        self._add_lines(max(1.0, width or 0.0), max_lines, hanging)
        self._layout.endLayout()
        last = self._bands[-1] if self._bands else _Band(0, self._face.line, 0)
        self.height = last.top + last.height
        self._boxes = [
            box for run in self._runs if run.boxed for box in self._line_rects(run.start, run.end)
        ]

    def paint(
        self,
        painter: QPainter,
        at: QPointF,
        selected: Range | None = None,
        found: Sequence[Range] = (),
        *,
        top: float = -inf,
        bottom: float = inf,
    ) -> None:
        """Paint the text with its top left corner at `at`.

        Lines outside the range from y = `top` to y = `bottom` of the text are left out: in a PDF
        file, clipped text can be found and copied. Text with a selection is painted whole.
        The ranges in `found` are underlined. The range `selected` has the accent colour as its
        background.
        """
        colors = self._look.colors
        for part in found:
            for rect in self._line_rects(part.start, part.end):
                line = rect.translated(at).adjusted(0, rect.height() - Space.HAIR, 0, 0)
                painter.fillRect(line, QColor(colors.must_read.ink))
        for box in self._boxes:
            margin = max(1.0, (box.height() - self._face.font.pixelSize() * _BOX_EMS) / 2)
            shape = box.translated(at).adjusted(-_BOX_PAD, margin, _BOX_PAD, -margin)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(colors.inline_code))
            painter.drawRoundedRect(shape, _BOX_RADIUS, _BOX_RADIUS)
        painter.setPen(QColor(self._ink))
        if selected is None:
            for number, band in enumerate(self._bands):
                if band.top < bottom and band.top + band.height > top:
                    self._layout.lineAt(number).draw(painter, at)
            self._paint_insets(painter, at, None)
            return
        for rect in self._line_rects(selected.start, selected.end):
            painter.fillRect(rect.translated(at), QColor(colors.accent))
        inverse = self._look.ink_format(colors.on_accent)
        self._layout.draw(painter, at, [self._qt_range(selected.start, selected.end, inverse)])
        self._paint_insets(painter, at, selected)

    def position_at(self, x: float, y: float) -> int:
        """Return the text position that is nearest to a point."""
        count = self._layout.lineCount()
        if count == 0:
            return 0
        line = self._layout.lineAt(max(0, self._band_at(y)))
        at = self._units.to_python(line.xToCursor(x))
        position = self._insets.snapped(Range(at, at)).end
        end = self._units.to_python(line.textStart() + line.textLength())
        # The nearest position at the end of this line is before the line break. The position after
        # the line break belongs to the next line.
        at_break = position == end and self.text[end - 1 : end] == LINE_BREAK
        return position - 1 if at_break else position

    def line_top(self, position: int) -> int:
        """Return the y of the top of the line that contains a text position."""
        line = self._layout.lineForTextPosition(self._units.to_qt(min(position, len(self.text))))
        return self._bands[line.lineNumber()].top if line.isValid() else 0

    def x_at(self, position: int) -> float:
        """Return the x coordinate of a text position."""
        unit = self._units.to_qt(position)
        line = self._layout.lineForTextPosition(unit)
        return _x(line, unit) if line.isValid() else 0.0

    @property
    def line_starts(self) -> list[int]:
        """The position of the first character of each line."""
        lines = map(self._layout.lineAt, range(self._layout.lineCount()))
        return [self._units.to_python(line.textStart()) for line in lines] or [0]

    @property
    def line_tops(self) -> list[int]:
        """The y coordinate of the top of each line."""
        return [band.top for band in self._bands]

    @property
    def links(self) -> list[FlowLink]:
        """All links in reading order. Adjacent runs with the same address are one link."""
        links: list[list[TextRun]] = []
        for run in self._runs:
            before = links[-1][-1] if links else None
            if before is not None and (before.link, before.end) == (run.link, run.start):
                links[-1].append(run)
            elif run.link:
                links.append([run])
        return [self._link(runs) for runs in links]

    def link_at(self, x: float, y: float) -> FlowLink | None:
        """Return the link at a point, or None if the point is not on a link."""
        number = self._band_at(y)
        if number < 0 or y >= self.height:
            return None
        line = self._layout.lineAt(number)
        text = line.naturalTextRect()
        if not text.left() <= x <= text.right():
            return None
        unit = line.xToCursor(x, QTextLine.CursorPosition.CursorOnCharacter)
        position = self._units.to_python(unit)
        runs = [run for run in self._runs if run.link and run.start <= position < run.end]
        return self._link(runs) if runs else None

    def line_rects(self, part: Range) -> list[QRectF]:
        """Return rectangles that cover a part of the text, at least one for each of its lines."""
        return list(self._line_rects(part.start, part.end))

    def end_point(self) -> QPointF:
        """Return the point at which the text ends.

        Its x is after the last glyph. Its y is the top of the text in the last line.
        """
        count = self._layout.lineCount()
        if count == 0:
            return QPointF(0, 0)
        text, band = self._layout.lineAt(count - 1).naturalTextRect(), self._bands[-1]
        x = text.left() if self.is_rtl else text.right()
        return QPointF(x, band.baseline - self._face.baseline)

    def _link(self, runs: Sequence[TextRun]) -> FlowLink:
        start, end = runs[0].start, runs[-1].end
        rect = next(self._line_rects(start, end), QRectF())
        return FlowLink(runs[0].link, self.text[start:end], rect)

    def _band_at(self, y: float) -> int:
        """Return the number of the line at a y coordinate.

        If y is below the text, return the number of the last line. If y is above the text, return
        -1.
        """
        return bisect_right(self._bands, y, key=lambda band: band.top) - 1

    def _paint_insets(self, painter: QPainter, at: QPointF, selected: Range | None) -> None:
        for inset in self._insets.insets:
            unit = self._units.to_qt(inset.place.start)
            line = self._layout.lineForTextPosition(unit)
            if line.isValid():
                corner = QPointF(self._left_of(line, unit), self._bands[line.lineNumber()].baseline)
                marked = selected is not None and overlap(selected, inset.place)
                ink = self._look.colors.on_accent if marked else self._ink
                inset.drawing.paint(painter, at + corner, ink)

    def _band(self, top: int, line: QTextLine) -> _Band:
        """Return the position and height of a line. A tall formula makes the line higher."""
        face = self._face
        first = self._units.to_python(line.textStart())
        end = self._units.to_python(line.textStart() + line.textLength())
        above, below = self._insets.overhang(Range(first, end))
        return _Band(top, face.line + above + below, top + above + face.baseline)

    def _add_lines(self, width: float, max_lines: int | None, hanging: float) -> None:
        natural, top = 0.0, 0
        self._bands = []
        while len(self._bands) != max_lines:
            line = self._layout.createLine()
            if not line.isValid():
                break
            line.setLineWidth(width - hanging if self._bands else width)
            band = self._band(top, line)
            line.setPosition(QPointF(0, band.baseline - line.ascent()))
            self._bands.append(band)
            natural = max(natural, line.naturalTextWidth())
            top += band.height
        self.num_lines = max(1, len(self._bands))
        self.natural_width = natural

    def _line_rects(self, start: int, end: int) -> Iterator[QRectF]:
        """Yield rectangles that cover the characters [start, end).

        Each line has one rectangle, or several in bidirectional text.
        """
        part = self._insets.snapped(Range(start, end))
        first, last = self._units.to_qt(part.start), self._units.to_qt(part.end)
        at = self._layout.lineForTextPosition(first)
        for number in range(at.lineNumber() if at.isValid() else 0, self._layout.lineCount()):
            line = self._layout.lineAt(number)
            if line.textStart() >= last:
                return
            left = max(first, line.textStart())
            right = min(last, line.textStart() + line.textLength())
            if left < right:
                band = self._bands[number]
                for x, end_x in self._extents(line, left, right):
                    yield QRectF(x, band.top, max(end_x - x, Space.XS), band.height)

    def _extents(self, line: QTextLine, first: int, last: int) -> list[tuple[float, float]]:
        """Return the left and right x of the UTF-16 units [first, last) of a line.

        In bidirectional text, the units may appear as several separate pieces on the screen. The
        list has one pair for each piece.
        """
        if not self._is_bidi:
            return [(_x(line, first), _x(line, last))]
        rects = [run.boundingRect() for run in line.glyphRuns(first, last - first)]
        extents: list[tuple[float, float]] = []
        for left, right in sorted((rect.left(), rect.right()) for rect in rects):
            if extents and left - extents[-1][1] < 1:
                extents[-1] = (extents[-1][0], right)
            else:
                extents.append((left, right))
        return extents or [(_x(line, first), _x(line, first))]

    def _left_of(self, line: QTextLine, unit: int) -> float:
        return self._extents(line, unit, unit + 1)[0][0]

    def _qt_range(
        self, start: int, end: int, text_format: QTextCharFormat
    ) -> QTextLayout.FormatRange:
        made = QTextLayout.FormatRange()
        made.start = self._units.to_qt(start)
        made.length = self._units.to_qt(end) - made.start
        made.format = text_format
        return made


def _x(line: QTextLine, position: int) -> float:
    return cast("tuple[float, int]", line.cursorToX(position))[0]
