"""The formulas inside a wrapped text. Used on the main thread only.

Qt lays out invisible characters instead of the LaTeX source of a formula. The first character is a
no-break space that is made as wide as the picture of the formula. The other characters are word
joiners, which have no width. Qt does not break a line at these characters, so a formula is never
cut at the end of a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from PySide6.QtGui import QFont, QFontMetricsF, QTextCharFormat

from app.widgets.transcript.rows.formula_shelf import Drawing
from app.widgets.transcript.rows.look import Face, Look
from app.widgets.transcript.rows.ranges import Range

_BLANK = "\u00a0"
_NOTHING = "\u2060"


@dataclass(frozen=True, slots=True)
class FormulaInset:
    """The picture of a formula. It is painted instead of the LaTeX source of the formula."""

    place: Range  # the LaTeX characters that the picture replaces
    drawing: Drawing


class FormulaInsets:
    """The formulas of one text. Positions are indexes of Python characters.

    face: the font of the text
    """

    def __init__(self, look: Look, face: Face, insets: Sequence[FormulaInset]) -> None:
        self.insets = insets
        self._look = look
        self._face = face

    def with_blanks(self, text: str) -> str:
        """Replace each character of the LaTeX source of a formula with an invisible character."""
        for inset in self.insets:
            start, end = inset.place.start, inset.place.end
            text = f"{text[:start]}{_BLANK}{_NOTHING * (end - start - 1)}{text[end:]}"
        return text

    def fit(self, width: float | None) -> Iterator[tuple[int, int, QTextCharFormat]]:
        """Shrink each formula that is wider than `width`, and yield one format for each formula.

        The letter spacing of the format makes the no-break space of a formula as wide as the
        picture. The format is for the characters from the first number to the second.
        """
        for inset in self.insets:
            if width is not None:
                inset.drawing.fit(width, self._look.page_height)
            font = QFont(self._face.font)
            blank = QFontMetricsF(font).horizontalAdvance(_BLANK)
            spacing = QFont.SpacingType.AbsoluteSpacing
            font.setLetterSpacing(spacing, inset.drawing.width - blank)
            wide = QTextCharFormat()
            wide.setFont(font)
            yield inset.place.start, inset.place.start + 1, wide

    def overhang(self, line: Range) -> tuple[int, int]:
        """Return the pixels by which formulas are taller than a line, above and below the text."""
        face = self._face
        drawings = [one.drawing for one in self.insets if line.start <= one.place.start < line.end]
        above = max((ceil(d.ascent - face.baseline) for d in drawings), default=0)
        below = max((ceil(d.descent - face.line + face.baseline) for d in drawings), default=0)
        return max(0, above), max(0, below)

    def snapped(self, part: Range) -> Range:
        """Extend a range to the whole formula if the range begins or ends inside a formula."""
        start, end = part.start, part.end
        for inset in self.insets:
            start = inset.place.start if inset.place.start < start < inset.place.end else start
            end = inset.place.end if inset.place.start < end < inset.place.end else end
        return Range(start, end)
