"""Fonts, text formats, colours and scaled lengths for laying out and painting the transcript.

A `Look` never changes: it belongs to one appearance of the theme, such as dark, and to one zoom
factor. When the appearance or the zoom changes, the view creates a new Look and drops all layouts
that used the old Look. Fonts and formats are created at first use and shared by all rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtGui import QBrush, QColor, QFont, QFontMetricsF, QLinearGradient, QTextCharFormat
from typing_extensions import override

from app.theme.palette import Theme
from app.theme.tokens import LIGHT, Colors, Size, Space, TextStyle, Type
from app.viewmodels.blocks import TextMark
from app.viewmodels.highlight import Ink
from app.widgets.transcript.rows.formula_shelf import FormulaShelf
from app.widgets.transcript.rows.picture_shelf import PictureShelf

_BOLD = 600
# Factor for the font size of inline code. Without it, code looks larger than the text around it.
_CODE_SCALE = 0.9
_HEADINGS = (Type.H1, Type.H2, Type.H3)


@dataclass(frozen=True, slots=True)
class Face:
    """A font, and the line height and baseline that the text style requires."""

    font: QFont
    line: int  # line height in pixels
    baseline: float  # distance from the top of a line to its baseline, in pixels
    average: float  # average width of a character in pixels

    @property
    def tab(self) -> float:
        """The distance between tab stops: four average characters."""
        return 4 * self.average


class Look:
    """The colours, icons, fonts and formats for one zoom factor. Main thread only."""

    # Height of a page in pixels; None on screen. On paper nothing scrolls and nothing can be
    # clicked: rows wrap, shrink or leave out what the screen scrolls or offers.
    page_height: int | None = None

    def __init__(
        self,
        theme: Theme,
        formulas: FormulaShelf,
        pictures: PictureShelf,
        zoom: float = 1.0,
        margin: int = Space.XL,
    ) -> None:
        """Make the look. margin: pixels at each side of messages that fill the view."""
        self.formulas = formulas
        self.pictures = pictures
        self.colors: Colors = theme.colors
        self.icons = theme.icons
        self.zoom = zoom
        self._margin = margin
        self._fonts = theme.fonts
        self._faces: dict[TextStyle, Face] = {}
        # Key: text style, marks, and True if the format is for a link.
        self._formats: dict[tuple[TextStyle, TextMark, bool], QTextCharFormat] = {}
        self._ink_formats: dict[str, QTextCharFormat] = {}  # key: text colour
        self._fades: dict[str, QBrush] = {}  # key: background colour
        # The font of body text. Messages use this font to estimate their heights.
        self.body = self.face(Type.BODY)

    @property
    def on_paper(self) -> bool:
        return self.page_height is not None

    def px(self, length: float) -> int:
        """Multiply a length by the zoom factor and round the result to whole pixels."""
        return round(length * self.zoom)

    def column(self, view_width: int) -> int:
        """Return the width of the column of messages in a view that is `view_width` pixels wide."""
        return max(1, min(self.px(Size.COLUMN), view_width - 2 * self._margin))

    def face(self, style: TextStyle) -> Face:
        face = self._faces.get(style)
        if face is None:
            font = self._font(style)
            metrics = QFontMetricsF(font)
            line = self.px(style.line)
            slack = line - metrics.ascent() - metrics.descent()
            face = Face(font, line, slack / 2 + metrics.ascent(), metrics.averageCharWidth())
            self._faces[style] = face
        return face

    def heading(self, level: int) -> TextStyle:
        """Return the text style for heading level 1 to 6, or the style of body text for level 0."""
        return Type.BODY if level == 0 else _HEADINGS[min(level, len(_HEADINGS)) - 1]

    def span_format(self, style: TextStyle, marks: TextMark, *, link: bool) -> QTextCharFormat:
        """Return the character format for a text style with marks, such as bold or code."""
        key = (style, marks, link)
        made = self._formats.get(key)
        if made is None:
            made = self._formats[key] = self._make_format(style, marks, link=link)
        return made

    def ink_format(self, color: str) -> QTextCharFormat:
        """Return a format that changes only the text colour."""
        made = self._ink_formats.get(color)
        if made is None:
            made = self._ink_formats[color] = QTextCharFormat()
            made.setForeground(QColor(color))
        return made

    @property
    def fade_width(self) -> int:
        return self.px(Space.XXL)

    def fade(self, ground: str) -> QBrush:
        """Return a brush that fades into the background colour.

        The brush is transparent at x = 0 and opaque at x = fade_width. If the content of a row
        continues beyond an edge, the row paints the brush over the content at this edge.
        """
        made = self._fades.get(ground)
        if made is None:
            gradient = QLinearGradient(0, 0, self.fade_width, 0)
            seen, unseen = QColor(ground), QColor(ground)
            unseen.setAlpha(0)
            gradient.setColorAt(0, unseen)
            gradient.setColorAt(1, seen)
            made = self._fades[ground] = QBrush(gradient)
        return made

    def code_format(self, ink: Ink) -> QTextCharFormat:
        syntax = self.colors.syntax
        inks = {
            Ink.KEYWORD: syntax.keyword,
            Ink.STRING: syntax.string,
            Ink.NUMBER: syntax.number,
            Ink.FUNCTION: syntax.function,
            Ink.TYPE: syntax.type,
            Ink.COMMENT: syntax.comment,
        }
        return self.ink_format(inks[ink])

    def _font(self, style: TextStyle) -> QFont:
        return self._fonts.font(style, zoom=self.zoom)

    def _make_format(self, style: TextStyle, marks: TextMark, *, link: bool) -> QTextCharFormat:
        font = QFont(self.face(style).font)
        if TextMark.BOLD in marks:
            font.setWeight(QFont.Weight(_BOLD))
        if TextMark.ITALIC in marks:
            font.setItalic(True)
        if TextMark.CODE in marks:
            font.setFamily(self._fonts.code)
            font.setPixelSize(max(1, round(style.size * self.zoom * _CODE_SCALE)))
        made = QTextCharFormat()
        made.setFont(font)
        made.setFontStrikeOut(TextMark.STRIKE in marks)
        if link:
            made.setForeground(QColor(self.colors.link))
            made.setFontUnderline(True)
        return made


class PaperLook(Look):
    """The look of printed pages: light colours and normal size in every appearance and zoom."""

    def __init__(
        self, theme: Theme, formulas: FormulaShelf, pictures: PictureShelf, page_height: int
    ) -> None:
        super().__init__(theme, formulas, pictures)
        self.colors = LIGHT
        self.page_height = page_height

    @override
    def _font(self, style: TextStyle) -> QFont:
        """Return an unhinted font: its widths must fit printers with smaller dots than pixels."""
        font = super()._font(style)
        font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
        return font
