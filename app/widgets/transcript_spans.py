"""Spans as they are laid out: text, the looks of its runs, and formulas as pictures. Main thread."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from app.theme.tokens import TextStyle
from app.viewmodels.blocks import Mark, Span
from app.viewmodels.typeset import Formula
from app.widgets.transcript_flow import Inset, Range, Run, TextFlow
from app.widgets.transcript_formulas import Drawing
from app.widgets.transcript_look import Look

_INSET = "\u00a0"  # a formula's place in the text: wide, blank, and no place to break a line


@dataclass(slots=True)
class _Content:
    """What a flow is made of."""

    text: str = ""
    runs: list[Run] = field(default_factory=list[Run])
    insets: list[Inset] = field(default_factory=list[Inset])


class SpanText:
    """A paragraph's text in one style, ready to be laid out.

    A formula is one character of it once its picture is there; till then, and where it can't be set, it
    is its source, set as code.
    """

    def __init__(self, look: Look, style: TextStyle, spans: Iterable[Span]) -> None:
        self._look = look
        self._style = style
        self._spans = tuple(spans)
        self._sources: dict[int, str] = {}  # of the formulas, by their place in the text
        self._missing: list[Formula] = []
        self._content = self._make()

    @property
    def text(self) -> str:
        return self._content.text

    @property
    def is_stale(self) -> bool:
        """Whether a picture has come since: make another."""
        return any(not self._look.formulas.is_waiting_for(formula) for formula in self._missing)

    @property
    def is_waiting(self) -> bool:
        """Whether a picture is still to come."""
        return bool(self._missing)

    def flow(self, ink: str) -> TextFlow:
        content = self._content
        return TextFlow(
            self._look, self._style, content.text, ink=ink, runs=content.runs, insets=content.insets
        )

    def source(self, part: Range) -> str:
        """Part of the text, as people write it."""
        pieces: list[str] = []
        start = part.start
        for place, source in self._sources.items():
            if part.start <= place < part.end:
                pieces += [self.text[start:place], source]
                start = place + 1
        return "".join([*pieces, self.text[start : part.end]])

    def _make(self) -> _Content:
        content = _Content()
        for span in self._spans:
            if Mark.FORMULA in span.marks:
                self._add_formula(content, span)
            else:
                self._add_text(content, span, span.marks)
        return content

    def _add_text(self, content: _Content, span: Span, marks: Mark) -> None:
        start = len(content.text)
        content.text += span.text
        if marks or span.link:
            made = self._look.span_format(self._style, marks, link=bool(span.link))
            boxed = Mark.CODE in marks
            content.runs.append(Run(start, len(content.text), made, span.link, boxed))

    def _add_formula(self, content: _Content, span: Span) -> None:
        formula = Formula(span.text, display=Mark.DISPLAY in span.marks)
        engraving = self._look.formulas.find(formula)
        if engraving is None:
            if self._look.formulas.is_waiting_for(formula):
                self._missing.append(formula)
            self._add_text(content, span, Mark.CODE)
            return
        place = len(content.text)
        content.text += _INSET
        drawing = Drawing(engraving, self._style.size * self._look.zoom)
        content.insets.append(Inset(place, drawing))
        dollars = "$$" if formula.display else "$"
        self._sources[place] = f"{dollars}{span.text}{dollars}"
