"""Nodes of ziamath for tables with lines, boxes, and wide characters.

The import of this module replaces ziamath's nodes, so only the helper process imports it. Lengths
are in points. y counts downwards from the baseline in `nodexy`, and upwards in a `BBox`.
"""

# BBox of ziafont is an untyped named tuple.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice, zip_longest
from typing import Any
from xml.etree import ElementTree as ET

from typing_extensions import override
from ziafont.fonttypes import BBox
from ziamath.drawable import HLine, VLine
from ziamath.nodes.menclose import Menclose
from ziamath.nodes.mnode import Mnode
from ziamath.nodes.mtable import Mtable
from ziamath.zmath import Math

from app.viewmodels.array_lines import COLUMN_LINES, DASHED, ROW_LINES
from app.viewmodels.mathml import WIDE

_DASH = "0.2em"
_BOX_MARGIN = "0.2em"
_WIDE_HEIGHT, _WIDE_DEPTH = 0.88, 0.12  # of a wide character, in em


def laid_out(root: ET.Element, *, size: float, margin: float) -> Math:
    """Lay out MathML with the nodes of this module."""
    return Math(root, size=size, margin=margin)


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a table, over the columns from `first` to `last`; a `last` of -1 is the end."""

    boundary: int
    style: str
    first: int = 0
    last: int = -1

    @classmethod
    def parse(cls, word: str) -> _Line:
        """Parse a word of ROW_LINES or COLUMN_LINES."""
        boundary, style, *columns = word.split(":")
        return cls(int(boundary), style, *map(int, columns))


class LinedTable(Mtable, tag="mtable"):
    """A table that draws the lines of its attributes ROW_LINES and COLUMN_LINES."""

    @override
    def _setup(self, **kwargs: Any) -> None:
        super()._setup(**kwargs)
        row_lines, column_lines = self._lines(ROW_LINES), self._lines(COLUMN_LINES)
        if not row_lines and not column_lines:
            return
        xs, ys = self._column_boundaries(), self._row_boundaries()
        thickness = self.units_to_points(self.font.math.consts.fractionRuleThickness)
        for line, shift in _side_by_side(row_lines, 3 * thickness):
            last = len(xs) - 1 if line.last < 0 else min(line.last + 1, len(xs) - 1)
            first = min(line.first, last)
            y = ys[min(line.boundary, len(ys) - 1)] + shift - thickness / 2
            for start, length in self._strokes(xs[first], xs[last], line.style):
                self.nodes.append(HLine(length, thickness, style=self.style, **kwargs))
                self.nodexy.append((start, y))
        for line, shift in _side_by_side(column_lines, 3 * thickness):
            x = xs[min(line.boundary, len(xs) - 1)] + shift
            for start, length in self._strokes(ys[0], ys[-1], line.style):
                self.nodes.append(VLine(length, thickness, style=self.style, **kwargs))
                self.nodexy.append((x, start))
        self.nodexy = [(x - xs[0], y) for x, y in self.nodexy]
        self.bbox = BBox(0, xs[-1] - xs[0], -ys[-1], -ys[0])

    def _lines(self, attribute: str) -> list[_Line]:
        return [_Line.parse(word) for word in self.element.get(attribute, "").split()]

    def _cells(self) -> Iterator[list[tuple[Any, float]]]:
        """Yield the cells of each row with the y of their baseline."""
        cells = iter(zip(self.nodes, (y for _, y in self.nodexy), strict=True))
        for row in self.element:
            yield list(islice(cells, len(row)))

    def _column_boundaries(self) -> list[float]:
        """Return the x in the middle of each gap between columns, and of the outer edges."""
        spacing = self.element.get("columnspacing", "0.3em").split()
        columns = zip_longest(*self._cells())
        widths = [max(cell[0].bbox.xmax for cell in column if cell) for column in columns]
        gaps = [self.size_px(spacing[c % len(spacing)]) for c in range(len(widths))]
        inner = sum(widths) + sum(gaps[:-1])
        x = (self.bbox.xmax - inner) / 2
        found = [x - gaps[0] / 2]
        for width, gap in zip(widths, gaps, strict=True):
            x += width + gap
            found.append(x - gap / 2)
        return found

    def _row_boundaries(self) -> list[float]:
        """Return the y in the middle of each gap between rows, and of the outer edges."""
        tops = [min(y - node.bbox.ymax for node, y in row) for row in self._cells()]
        bottoms = [max(y - node.bbox.ymin for node, y in row) for row in self._cells()]
        pad = self.size_px(self.element.get("rowspacing", "0.3em").split()[0]) / 2
        inner = [(above + below) / 2 for above, below in zip(bottoms, tops[1:], strict=False)]
        return [tops[0] - pad, *inner, bottoms[-1] + pad]

    def _strokes(self, start: float, end: float, style: str) -> Iterator[tuple[float, float]]:
        """Yield the start and length of the line, or of each dash."""
        dash = self.size_px(_DASH) if style == DASHED else end - start
        while dash > 0 and start < end:
            yield start, min(dash, end - start)
            start += 2 * dash


class FormulaBox(Menclose, tag="menclose"):
    """A box with a margin, as high as it looks. ziamath counts the depth of its box twice."""

    @override
    def _setup(self, **kwargs: Any) -> None:
        margin = self.size_px(_BOX_MARGIN) if "box" in self.notation else 0.0
        left, right, bottom, top = self.base.bbox
        self.base.bbox = BBox(left - margin, right + margin, bottom - margin, top + margin)
        super()._setup(**kwargs)
        x, y = self.nodexy[-1]
        self.nodexy[-1] = x + margin, y
        if "updiagonalarrow" not in self.notation:
            pad = 2 * self.units_to_points(self.font.math.consts.radicalRuleThickness)
            self.bbox = self.bbox._replace(ymax=top + margin + pad)


class WideText(Mnode, tag=WIDE):
    """Chinese, Japanese or Korean characters, painted in a system font. Each is 1 em wide."""

    def __init__(self, element: ET.Element, parent: Mnode, **kwargs: Any) -> None:
        super().__init__(element, parent, **kwargs)
        self._text = element.text or ""
        width = len(self._text) * self.glyphsize
        self.bbox = BBox(0, width, -_WIDE_DEPTH * self.glyphsize, _WIDE_HEIGHT * self.glyphsize)

    @override
    def draw(self, x: float, y: float, svg: ET.Element) -> tuple[float, float]:
        for character in self._text:
            place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "font-size": f"{self.glyphsize:.1f}"}
            text = ET.SubElement(svg, "text", place, fill=self.style.mathcolor)
            text.text = character
            x += self.glyphsize
        return x, y


def _side_by_side(lines: Sequence[_Line], gap: float) -> Iterator[tuple[_Line, float]]:
    """Yield each line with its distance from the boundary, which several lines can share."""
    for _, group in groupby(lines, key=lambda line: (line.boundary, line.first)):
        same = list(group)
        for number, line in enumerate(same):
            yield line, gap * (number - (len(same) - 1) / 2)
