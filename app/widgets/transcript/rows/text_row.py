"""The rows of text, and of the line between texts. Used on the main thread only."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor
from typing_extensions import override

from app.theme.tokens import Space, TextStyle
from app.viewmodels.blocks import LINE_BREAK, TextSpan
from app.widgets.transcript.rows.flow import FlowLink, TextFlow
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.ranges import Range
from app.widgets.transcript.rows.row import (
    Hit,
    Paint,
    RowAction,
    Target,
    TranscriptRow,
    between_lines,
)
from app.widgets.transcript.rows.spans import SpanText


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
        self.request_formulas()
        flow = self._laid_out(self._width)
        marks = paint.selected, paint.found
        flow.paint(paint.painter, QPointF(0, 0), *marks, top=paint.top, bottom=paint.bottom)

    @override
    def page_breaks(self) -> Sequence[int]:
        return between_lines(self._laid_out(self._width).line_tops)

    @override
    def request_formulas(self) -> None:
        self._content.ask_again()

    @override
    def release(self) -> None:
        self._flow = None

    @override
    def hits(self) -> Sequence[Hit]:
        if not any(span.link for span in self._spans):
            return self._formulas()
        links = [link_hit(link) for link in self._laid_out(self._width).links]
        return [*links, *self._formulas()]

    @override
    def hit(self, x: float, y: float) -> Hit | None:
        link = self._laid_out(self._width).link_at(x, y)
        if link is not None:
            return link_hit(link)
        return next((hit for hit in self._formulas() if hit.rect.contains(x, y)), None)

    def _formulas(self) -> list[Hit]:
        found = self._content.formulas
        return formula_hits(self._content, self._laid_out(self._width)) if found else []

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


def link_hit(link: FlowLink) -> Hit:
    """Return a `Hit` that opens a link. Its name is one line."""
    name = link.text.replace(LINE_BREAK, " ")
    return Hit(Target(RowAction.OPEN_LINK, link.address), link.rect, name, link.address)


def formula_hits(content: SpanText, flow: TextFlow) -> list[Hit]:
    """Return a hit for each line of each formula. The tooltip has the reason if it is not drawn."""
    return [
        Hit(Target(RowAction.EXPLAIN, found.formula.latex), rect, tip=found.why)
        for found in content.formulas
        for rect in flow.line_rects(found.place)
    ]


class RuleRow(TranscriptRow):
    """A horizontal line (a thematic break in Markdown)."""

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
