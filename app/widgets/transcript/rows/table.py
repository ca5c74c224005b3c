"""Tables of the transcript. Used on the main thread only.

A table is divided into `TableRow` objects, so that only the visible part of a long table is laid
out. A TableRow has up to ROWS_AT_ONCE rows of the table. All TableRow objects of a table share one
`TableColumns` object with the column widths and the sideways scroll position (table_columns.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor
from typing_extensions import override

from app.theme.tokens import Space, Type
from app.viewmodels.blocks import Align, Cell, TableBlock, TextMark
from app.widgets.transcript.rows.flow import TextFlow
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.ranges import Range
from app.widgets.transcript.rows.row import Hit, Paint, TranscriptRow, between_lines
from app.widgets.transcript.rows.spans import SpanText
from app.widgets.transcript.rows.table_columns import HEADER_STYLE, TableColumns
from app.widgets.transcript.rows.text_row import formula_hits, link_hit

ROWS_AT_ONCE = 20  # maximum number of table rows in one TableRow
CELLS_AT_ONCE = 120  # maximum number of cells in one TableRow, unless it is a single row
# On paper, a table row may be cut between its lines if it has at least this number of lines.
_HIGH_ROW = 8


@dataclass(frozen=True, slots=True)
class _PlacedCell:
    """A cell of a table after its layout."""

    content: SpanText
    flow: TextFlow
    start: int  # index of the cell's first character in the text of the TableRow
    x: int  # left edge of the text, in pixels from the left edge of the unscrolled table
    y: int  # top edge of the text, in pixels from the top of the TableRow

    def hits(self) -> list[Hit]:
        """Return the links and the formulas."""
        found = [*map(link_hit, self.flow.links), *formula_hits(self.content, self.flow)]
        return [hit.translated(self.x, self.y) for hit in found]


class TableRow(TranscriptRow):
    """Up to ROWS_AT_ONCE rows of a table. The first TableRow has the header."""

    def __init__(
        self, columns: TableColumns, rows: tuple[tuple[Cell, ...], ...], first: int
    ) -> None:
        self.columns = columns
        self._look = columns.look
        self.rows = rows
        self._first = first  # index of rows[0] in the table
        self.continues = first > 0
        # The text that can be selected and searched.
        self._text = "\n".join("\t".join(cell.text for cell in row) for row in rows)
        # The value of columns.generation when `_cells` was laid out.
        self._generation = columns.generation
        self._cells: list[_PlacedCell] = []  # cells in reading order; empty if not laid out
        self._lines: list[int] = []  # y of the line that is painted below each table row
        self._breaks: list[int] = []  # y at which a page may end; all y before scaling
        self._width = 0

    @override
    def estimate(self, width: int) -> int:
        return len(self.rows) * (self._look.face(Type.BODY).line + self._look.px(Space.M))

    @override
    def measure(self, width: int) -> int:
        if self.columns.awaited.has_news:
            self.columns.renew()
        if self._generation != self.columns.generation:
            self._generation = self.columns.generation
            self._cells = []
        self._lay_out(width)
        self.natural_width = self.columns.total * self.columns.scale
        self.num_lines = len(self.rows)
        return ceil(self._height * self.columns.scale)

    @override
    def paint(self, paint: Paint) -> None:
        self._lay_out(self._width)
        height, scale = self._height, self.columns.scale
        self.request_formulas()
        colors, painter = self._look.colors, paint.painter
        painter.save()
        painter.scale(scale, scale)
        area = QRectF(0, 0, self._width / scale, height)
        painter.setClipRect(area, Qt.ClipOperation.IntersectClip)
        painter.translate(-self.columns.scroll.offset, 0)
        for number, y in enumerate(self._lines):
            strong = self._first == 0 and number == 0
            color = colors.strong_line if strong else colors.hairline
            painter.fillRect(QRectF(0, y, max(self.columns.total, 0), 1), QColor(color))
        top, bottom = paint.top / scale, paint.bottom / scale
        for cell in self._cells:
            if cell.y >= bottom or cell.y + cell.flow.height <= top:
                continue
            at, length = QPointF(cell.x, cell.y), len(cell.flow.text)
            marks = paint.within(cell.start, length)
            cell.flow.paint(painter, at, *marks, top=top - cell.y, bottom=bottom - cell.y)
        painter.restore()
        self.columns.scroll.paint_edges(painter, paint.ground, 0, height)
        self.columns.scroll.paint(painter, height + Space.S)

    @override
    def page_breaks(self) -> Sequence[int]:
        self._lay_out(self._width)
        return [ceil(y * self.columns.scale) for y in self._breaks]

    @override
    def request_formulas(self) -> None:
        self.columns.awaited.ask_again()

    @override
    def release(self) -> None:
        self._cells = []

    @property
    @override
    def is_waiting(self) -> bool:
        return bool(self.columns.awaited)

    @property
    @override
    def is_stale(self) -> bool:
        return self.columns.awaited.has_news or self._generation != self.columns.generation

    @override
    def hits(self) -> list[Hit]:
        spans = (span for row in self.rows for cell in row for span in cell.spans)
        if not any(span.link or TextMark.FORMULA in span.marks for span in spans):
            return []
        scrolled = self.columns.scroll.offset
        return [hit.translated(-scrolled, 0) for cell in self._laid_out() for hit in cell.hits()]

    @override
    def hit(self, x: float, y: float) -> Hit | None:
        x += self.columns.scroll.offset
        cell = self._cell_at(x, y)
        if cell is None:
            return None
        link = cell.flow.link_at(x - cell.x, y - cell.y)
        formulas = formula_hits(cell.content, cell.flow)
        if link is not None:
            return link_hit(link)
        return next((hit for hit in formulas if hit.rect.contains(x - cell.x, y - cell.y)), None)

    @property
    @override
    def text(self) -> str:
        return self._text

    @override
    def copied(self, part: Range) -> str:
        pieces: list[str] = []
        start = 0
        for row in self.rows:
            for number, cell in enumerate(row):
                end = start + len(cell.text)
                if start < part.end and part.start <= end:
                    first, last = max(part.start - start, 0), min(part.end, end) - start
                    content = SpanText(self._look, Type.BODY, cell.spans)
                    # A line of the copied text is a row of the table.
                    pieces.append(content.source(Range(first, last)).replace("\n", " "))
                if part.start <= end < part.end:
                    pieces.append("\n" if number + 1 == len(row) else "\t")
                start = end + 1
        return "".join(pieces)

    @override
    def position_at(self, x: float, y: float) -> int:
        x += self.columns.scroll.offset
        cell = self._cell_at(x, y)
        return 0 if cell is None else cell.start + cell.flow.position_at(x - cell.x, y - cell.y)

    @override
    def line_top(self, position: int) -> int:
        starts = [cell for cell in self._laid_out() if cell.start <= position]
        return starts[-1].y if starts else 0

    @override
    def reveal(self, part: Range) -> None:
        cell = [cell for cell in self._laid_out() if cell.start <= part.start][-1]
        first, last = part.start - cell.start, min(part.end - cell.start, len(cell.flow.text))
        self.columns.scroll.reveal(cell.x + cell.flow.x_at(first), cell.x + cell.flow.x_at(last))

    @override
    def scroll_sideways(self, pixels: int) -> bool:
        return self.columns.scroll.scroll(pixels)

    def _lay_out(self, width: int) -> None:
        if not self._cells or width != self._width:
            self._width = width
            self.columns.fit(width)
            self._place()

    def _laid_out(self) -> list[_PlacedCell]:
        self._lay_out(self._width)
        return self._cells

    def _cell_at(self, x: float, y: float) -> _PlacedCell | None:
        """Return the last cell that starts above and to the left of a point.

        If the point is above or left of all cells, return the first cell. Return None if the row
        has no cells.
        """
        cells = self._laid_out()
        before = [cell for cell in cells if cell.y <= y + self._pad_y and cell.x <= x]
        if not before:
            return cells[0] if cells else None
        last_y = max(cell.y for cell in before)
        return [cell for cell in before if cell.y == last_y][-1]

    @property
    def _pad_y(self) -> int:
        return self._look.px(Space.M) // 2

    def _place(self) -> None:
        self._cells, self._lines, self._breaks = [], [], []
        start = y = 0
        for number, row in enumerate(self.rows):
            style = HEADER_STYLE if self._first == 0 and number == 0 else Type.BODY
            contents = [SpanText(self._look, style, cell.spans) for cell in row]
            cells = list(self._place_row(contents, start, y))
            if number > 1 or (number and self._first):
                self._breaks.append(y)
            self._breaks += _cuts(cells)
            self._cells += cells
            start = cells[-1].start + len(cells[-1].flow.text) + 1
            y += self._height_of(cells)
            self._lines.append(y - 1)

    @property
    def _height(self) -> int:
        """Height of the rows before scaling."""
        return self._lines[-1] + 1

    @property
    def header_height(self) -> int:
        """Height of the header, or 0 if the row has none."""
        return 0 if self._first else ceil((self._lines[0] + 1) * self.columns.scale)

    def _height_of(self, cells: list[_PlacedCell]) -> int:
        return max(cell.flow.height for cell in cells) + 2 * self._pad_y

    def _place_row(self, row: list[SpanText], start: int, y: int) -> Iterator[_PlacedCell]:
        x = 0
        for cell, width, align in zip(row, self.columns.widths, self.columns.aligns, strict=True):
            flow = cell.flow(self._look.colors.text)
            flow.wrap(width)
            slack = max(0, int(width - flow.natural_width))
            if flow.is_rtl:
                flow.wrap(width - slack)
            start_side = slack if flow.is_rtl else 0
            shift = {Align.LEFT: start_side, Align.CENTER: slack // 2, Align.RIGHT: slack}[align]
            yield _PlacedCell(cell, flow, start, x + shift, y + self._pad_y)
            start += len(cell.text) + 1
            x += width + self.columns.pad


def _cuts(cells: Sequence[_PlacedCell]) -> list[int]:
    """Return the y coordinates at which a high table row can be cut without cutting a line."""
    lines = [{cell.y + top for top in cell.flow.line_tops} for cell in cells]
    highest = max(lines, key=len)
    if len(highest) < _HIGH_ROW:
        return []
    ends = [cell.y + cell.flow.height for cell in cells]
    return [
        y
        for y in between_lines(sorted(highest))
        if all(y in tops or y >= end for tops, end in zip(lines, ends, strict=True))
    ]


def table_rows(look: Look, block: TableBlock, before: TableColumns | None = None) -> list[TableRow]:
    """Divide a table into TableRow objects.

    Args:
        look: fonts and colours.
        block: the table.
        before: the columns of the previous table if `block` is its continuation, else None.
    """
    columns = TableColumns(look, block, before)
    step = max(1, min(ROWS_AT_ONCE, CELLS_AT_ONCE // len(block.aligns)))
    offset = int(block.continues)  # 1 for a continued table, whose first row is not a header
    return [
        TableRow(columns, block.rows[first : first + step], first + offset)
        for first in range(0, len(block.rows), step)
    ]
