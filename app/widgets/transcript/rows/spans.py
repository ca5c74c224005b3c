"""Convert spans of Markdown text to plain text, formats and formula pictures for the layout.

Used on the main thread only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from PySide6.QtGui import QTextCharFormat

from app.theme.tokens import TextStyle
from app.viewmodels.blocks import LINE_BREAK, TextMark, TextSpan
from app.viewmodels.typeset import Formula
from app.widgets.transcript.rows.flow import TextFlow, TextRun
from app.widgets.transcript.rows.formula_insets import FormulaInset
from app.widgets.transcript.rows.formula_shelf import Awaited, Drawing
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.ranges import Range


@dataclass(frozen=True, slots=True)
class FormulaPlace:
    """A formula in a text."""

    place: Range
    formula: Formula
    why: str  # reason why it is shown as code; empty if it is drawn or not typeset yet


class SpanText:
    """The text of one paragraph, heading or table cell in one style.

    The text contains the LaTeX source of each formula, even while a picture is shown instead. Text
    positions therefore stay valid when the picture appears. Before a formula is typeset, or if
    typesetting fails, the source is shown as code.
    """

    def __init__(self, look: Look, style: TextStyle, spans: Iterable[TextSpan]) -> None:
        self.text = ""
        self._look = look
        self._style = style
        self.formulas: list[FormulaPlace] = []
        self._runs: list[TextRun] = []
        self._insets: list[FormulaInset] = []
        self._awaited = Awaited(look.formulas)
        for span in spans:
            self._add(span)

    @property
    def is_waiting(self) -> bool:
        """True if a formula of the text was not typeset when this object was created."""
        return bool(self._awaited)

    @property
    def is_stale(self) -> bool:
        """True if a formula was typeset after this object was created.

        A stale SpanText must be replaced by a new one.
        """
        return self._awaited.has_news

    def ask_again(self) -> None:
        """Request the formulas of this text again, so that they are typeset next."""
        self._awaited.ask_again()

    def flow(self, ink: str) -> TextFlow:
        """Return a `TextFlow` that shows the text in a colour. wrap() is not called yet."""
        return TextFlow(
            self._look, self._style, self.text, ink=ink, runs=self._runs, insets=self._insets
        )

    def source(self, part: Range) -> str:
        """Return a part of the text for the clipboard, with dollar signs around each formula."""
        pieces: list[str] = []
        start = part.start
        for place, formula in ((found.place, found.formula) for found in self.formulas):
            if part.start <= place.start and place.end <= part.end:
                dollars = "$$" if formula.display else "$"
                pieces += [self.text[start : place.start], dollars, formula.latex, dollars]
                start = place.end
        return "".join([*pieces, self.text[start : part.end]]).replace(LINE_BREAK, "\n")

    def _add(self, span: TextSpan) -> None:
        start = len(self.text)
        self.text += span.text
        place = Range(start, len(self.text))
        marks = span.marks
        if TextMark.FORMULA in marks:
            formula = Formula.of(span)
            why = self._look.formulas.why_undrawn(formula)
            self.formulas.append(FormulaPlace(place, formula, why))
            engraving = self._awaited.find(formula)
            marks = TextMark.CODE if engraving is None else TextMark.NONE
            if engraving is not None:
                drawing = Drawing(engraving, self._style.size * self._look.zoom)
                self._insets.append(FormulaInset(place, drawing))
        if marks or span.link:
            made = self._look.span_format(self._style, marks, link=bool(span.link))
            if span.link and self._look.on_paper:
                made = QTextCharFormat(made)  # a PDF has a link where the format has an address
                made.setAnchor(True)
                made.setAnchorHref(span.link)
            self._runs.append(
                TextRun(place.start, place.end, made, span.link, TextMark.CODE in marks)
            )
