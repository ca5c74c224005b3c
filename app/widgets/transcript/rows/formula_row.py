"""The row of a display formula. The formula is centred. If it is too wide, it scrolls sideways.

Used on the main thread only.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor
from typing_extensions import override

from app.theme.tokens import Space, TextStyle
from app.viewmodels.blocks import LINE_BREAK, FormulaBlock, TextMark, TextSpan
from app.viewmodels.typeset import Formula
from app.widgets.transcript.rows.formula_shelf import Awaited, Drawing
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.row import Hit, Paint, RowAction, Target, TranscriptRow
from app.widgets.transcript.rows.sideways import SideScroll
from app.widgets.transcript.rows.text_row import TextRow

_READABLE = 0.4  # smallest factor to which a formula is shrunk on paper


class FormulaRow(TranscriptRow):
    """A display formula.

    The row shows the LaTeX source until the formula is typeset. If typesetting fails, the row keeps
    showing the source.
    """

    def __init__(self, look: Look, style: TextStyle, block: FormulaBlock, ink: str) -> None:
        self._look = look
        self._style = style
        self._ink = ink
        self._formula = Formula(block.latex, display=True)
        source = TextSpan(block.latex.replace("\n", LINE_BREAK), TextMark.CODE)
        # The LaTeX source, shown while `_drawing` is None.
        self._source = TextRow(look, style, (source,), ink)
        self._scroll = SideScroll(look)
        self._drawing: Drawing | None = None
        self._awaited = Awaited(look.formulas)
        self._width = 0
        self._find()

    @override
    def measure(self, width: int) -> int:
        self._width = width
        if self._drawing is None:
            self._find()
        if self._look.on_paper:
            self._fit_page(width)
        if self._drawing is None:
            height = self._source.measure(width)
            self.natural_width = self._source.natural_width
            return height
        self.natural_width = width  # the formula is centred in the full width
        self._scroll.fit(round(self._drawing.width), width)
        return self._height_of(self._drawing)

    @override
    def paint(self, paint: Paint) -> None:
        drawing, painter = self._drawing, paint.painter
        if drawing is None:
            self.request_formulas()
            self._source.paint(paint)
            return
        height, ink = self._height_of(drawing), self._ink
        painter.save()
        painter.setClipRect(QRectF(0, 0, self._width, height), Qt.ClipOperation.IntersectClip)
        left = max(0.0, (self._width - drawing.width) / 2) - self._scroll.offset
        if paint.selected is not None:
            ink = self._look.colors.on_accent
            marked = QRectF(left - Space.XS, 0, drawing.width + 2 * Space.XS, height)
            painter.fillRect(marked, QColor(self._look.colors.accent))
        drawing.paint(painter, QPointF(left, self._look.px(Space.S) + drawing.ascent), ink)
        painter.restore()
        self._scroll.paint_edges(painter, paint.ground, 0, height)
        self._scroll.paint(painter, height)

    @override
    def page_breaks(self) -> Sequence[int]:
        return () if self._drawing is not None else self._source.page_breaks()

    @override
    def request_formulas(self) -> None:
        self._awaited.ask_again()

    @override
    def hits(self) -> Sequence[Hit]:
        target = Target(RowAction.EXPLAIN, self._formula.latex)
        area = QRectF(0, 0, self._width, self.height)
        return [Hit(target, area, tip=self._look.formulas.why_undrawn(self._formula))]

    @override
    def release(self) -> None:
        self._source.release()

    @property
    @override
    def is_waiting(self) -> bool:
        return bool(self._awaited)

    @property
    @override
    def is_stale(self) -> bool:
        return self._awaited.has_news

    @property
    @override
    def text(self) -> str:
        return self._formula.latex

    @override
    def position_at(self, x: float, y: float) -> int:
        """Return the text position nearest to a point.

        A typeset formula can only be selected as a whole, so the result is the start or the end of
        the LaTeX source.
        """
        if self._drawing is None:
            return self._source.position_at(x, y)
        return len(self.text) if x > self._width / 2 else 0

    @override
    def line_top(self, position: int) -> int:
        return 0 if self._drawing is not None else self._source.line_top(position)

    @override
    def end_rect(self) -> QRectF:
        if self._drawing is None:
            return self._source.end_rect()
        return QRectF((self._width + self._drawing.width) / 2, 0, 0, self.height)

    @override
    def scroll_sideways(self, pixels: int) -> bool:
        return self._drawing is not None and self._scroll.scroll(pixels)

    def _height_of(self, drawing: Drawing) -> int:
        return round(drawing.ascent + drawing.descent) + 2 * self._look.px(Space.S)

    def _fit_page(self, width: int) -> None:
        """Shrink the formula to the page, or show its source if it would be too small to read."""
        if self._drawing is not None:
            self._drawing.fit(width, self._look.page_height)
            if self._drawing.shrunk < _READABLE:
                self._drawing = None

    def _find(self) -> None:
        self._awaited = Awaited(self._look.formulas)
        engraving = self._awaited.find(self._formula)
        if engraving is not None:
            self._drawing = Drawing(engraving, self._style.size * self._look.zoom)
