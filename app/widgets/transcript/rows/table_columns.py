"""The column widths of a table. Used on the main thread only.

A column is as wide as its longest text, but at most 480 px. If the table is too wide, the columns
get smaller limits. Text that is wider than its column wraps. If the table is too wide even with the
smallest limit, it scrolls sideways. On paper it is made smaller instead.
"""

from __future__ import annotations

from PySide6.QtGui import QFontMetricsF

from app.theme.tokens import Space, TextStyle, Type
from app.viewmodels.blocks import LINE_BREAK, Cell, TableBlock, TextMark
from app.viewmodels.typeset import Formula
from app.widgets.transcript.rows.formula_shelf import Awaited
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.sideways import SideScroll
from app.widgets.transcript.rows.spans import SpanText

_WIDTH_ROWS = 200  # maximum number of rows that are measured to find the column widths
_WIDTH_CELLS = 1_000  # maximum number of cells that are measured, unless one row has more
_WIDTH_TEXT = 200  # maximum number of characters that are measured in each cell
# Maximum widths of a column in pixels, tried in this order until the table fits.
_CAPS = (480, 320, 240, 160)
_PAPER_CAPS = (*_CAPS, 120, 90, 70)
# Factor for measured widths: cells are measured in the font of the header, but bold text and code
# may be a little wider.
_SLACK = 1.04
HEADER_STYLE = TextStyle(Type.BODY.size, Type.BODY.line, 600)


class TableColumns:
    """The column widths and scroll position that all TableRow objects of a table share."""

    def __init__(self, look: Look, block: TableBlock, before: TableColumns | None) -> None:
        self.look = look
        self.aligns = block.aligns
        self._before = before  # columns of the table above if this one continues it, else None
        self.scroll = SideScroll(look) if before is None else before.scroll
        self.widths: list[int] = []  # column widths in pixels, set by fit()
        self.scale = 1.0  # factor of the whole table, set by fit(); below 1 only on paper
        # Counts how often formulas of the table were typeset. A TableRow that was laid out at a
        # lower number must be measured again.
        self.generation = 0
        self._formulas = [
            Formula.of(span)
            for row in block.rows
            for cell in row
            for span in cell.spans
            if TextMark.FORMULA in span.marks
        ]
        self._block = block
        # Column widths in pixels, without limits. Empty if not measured.
        self._natural: list[int] = []
        # Formulas of the table that are not typeset yet.
        self.awaited = Awaited(look.formulas, self._formulas)

    @property
    def pad(self) -> int:
        return self.look.px(Space.L)

    @property
    def total(self) -> int:
        return sum(self.widths) + self.pad * max(0, len(self.widths) - 1)

    def renew(self) -> None:
        """Discard the measured widths, so that fit() measures the newly typeset formulas."""
        self.awaited = Awaited(self.look.formulas, self._formulas)
        self._natural = []
        self.generation += 1

    def natural_widths(self) -> list[int]:
        """Return the column widths without limits, at least those of the table before."""
        self._natural = self._natural or [
            self._natural_width(column) for column in range(len(self.aligns))
        ]
        return self._known_widths()

    def _known_widths(self) -> list[int]:
        """Return the largest measured widths of this table and the tables before.

        Tables before that are not measured yet are left out: measuring all of them at once, for
        the last one, would stop the window.
        """
        widths = self._natural or [0] * len(self.aligns)
        if self._before is None:
            return widths
        return [
            max(both)
            for both in zip(widths, self._before._known_widths(), strict=True)  # noqa: SLF001
        ]

    def fit(self, width: int) -> None:
        """Choose column widths so that the table fits into `width` pixels, if possible."""
        natural = self.natural_widths()
        for cap in _PAPER_CAPS if self.look.on_paper else _CAPS:
            self.widths = [min(column, self.look.px(cap)) for column in natural]
            if self.total <= width:
                break
        if self.look.on_paper:
            self.scale = min(1.0, width / max(1, self.total))
        else:
            self.scroll.fit(self.total, width)

    def _natural_width(self, column: int) -> int:
        num_rows = min(_WIDTH_ROWS, max(1, _WIDTH_CELLS // len(self.aligns)))
        metrics = QFontMetricsF(self.look.face(HEADER_STYLE).font)
        cells = (row[column] for row in self._block.rows[:num_rows])
        return 1 + round(max(self._cell_width(cell, metrics) for cell in cells) * _SLACK)

    def _cell_width(self, cell: Cell, metrics: QFontMetricsF) -> float:
        if any(TextMark.FORMULA in span.marks for span in cell.spans):
            flow = SpanText(self.look, HEADER_STYLE, cell.spans).flow(self.look.colors.text)
            flow.wrap(None)
            return flow.natural_width
        lines = cell.text[:_WIDTH_TEXT].split(LINE_BREAK)
        return max(metrics.horizontalAdvance(line) for line in lines)
