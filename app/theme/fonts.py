"""The font families of the app, and QFonts for the type scale. Main thread.

Text uses the system font on macOS, and elsewhere the first installed family of TEXT_FAMILIES. Code
always uses a fixed-pitch family.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from PySide6.QtGui import QFont, QFontDatabase

from app.theme.tokens import TextStyle
from app.words import problems as words
from engine.errors import UserFixableError

TEXT_FAMILIES = (
    "Inter",
    "Cantarell",
    "Ubuntu",
    "Noto Sans",
    "Roboto",
    "Open Sans",
    "Segoe UI",
    "Liberation Sans",
    "DejaVu Sans",
)
CODE_FAMILIES = (
    "SF Mono",
    "Menlo",
    "JetBrains Mono",
    "Cascadia Mono",
    "Ubuntu Mono",
    "Noto Sans Mono",
    "Liberation Mono",
    "DejaVu Sans Mono",
)


class FontError(UserFixableError):
    """The error for a computer that has no fixed-pitch font."""

    title = words.NO_WINDOW
    advice = words.NO_CODE_FONT_ADVICE


@dataclass(frozen=True, slots=True)
class Fonts:
    """The families for text and for code, and the QFonts made from them."""

    text: str
    code: str

    def font(self, style: TextStyle, *, zoom: float = 1.0) -> QFont:
        """Return the font of one style of the type scale, sized in pixels."""
        font = QFont(self.code if style.mono else self.text)
        font.setPixelSize(max(1, round(style.size * zoom)))
        font.setWeight(QFont.Weight(style.weight))
        if style.mono:
            font.setStyleHint(QFont.StyleHint.Monospace)
            font.setFixedPitch(True)
        return font


def installed_fonts() -> Fonts:
    """Choose from the installed font families. A QGuiApplication must exist."""
    installed = QFontDatabase.families()
    text_default = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont).family()
    code_default = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family()
    if sys.platform == "darwin":
        text = text_default
    else:
        text = first_installed(TEXT_FAMILIES, installed) or text_default
    return Fonts(
        text=text,
        code=choose_code_family(
            (*CODE_FAMILIES, code_default, *sorted(installed)),
            installed,
            QFontDatabase.isFixedPitch,
        ),
    )


def first_installed(wanted: Sequence[str], installed: Collection[str]) -> str | None:
    """Return the first wanted family that is installed, or None if there is none."""
    return next((family for family in wanted if family in installed), None)


def choose_code_family(
    wanted: Sequence[str], installed: Collection[str], is_fixed_pitch: Callable[[str], bool]
) -> str:
    """Return the first wanted family that is installed and fixed-pitch.

    Raises:
        FontError: no wanted family is installed and fixed-pitch.
    """
    fixed = [family for family in wanted if family in installed and is_fixed_pitch(family)]
    if not fixed:
        raise FontError(words.NO_CODE_FONT)
    return fixed[0]
