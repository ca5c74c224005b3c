"""Typesetting of LaTeX formulas with ziamath. The result is an SVG picture.

ziamath is pure Python and takes 1 to 40 ms per ordinary formula, and minutes for deeply nested
ones. So this code runs in a helper process (helper.py). The first call also imports ziamath, which
takes 0.3 s.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from app.viewmodels.blocks import TextMark, TextSpan
from app.viewmodels.latex import rewritten, unknown_environment
from app.viewmodels.mathml import is_wide, repair, unknown_command
from app.words import transcript as words

if TYPE_CHECKING:
    from ziamath.zmath import Math

log = logging.getLogger(__name__)

# Placeholder for the colour in the SVG of a picture. Painting replaces it with the text colour.
INK = "currentColor"
MAX_LATEX = 2_000  # in characters; a longer formula would delay all other formulas for too long

# Deeper nesting is not typeset. ziamath needs exponential time for nested matrices and \left.
MAX_DEPTH = 6  # levels of environments and \left; each level doubles the time, and six take 0.4 s
MAX_BRACES = 8  # levels of nested braces, as in fractions and scripts
# Characters of a picture. Qt parses it on the main thread, in 45 ms if it is as long as this. Full
# pages of ordinary formulas take half. A dashed line below a wide space takes 4 MB.
MAX_SVG = 1_000_000

_SIZE = 100.0  # pixels per em while a formula is typeset
_MARGIN = 4.0  # pixels on each side, because some glyphs extend beyond their boxes
# Commands that define other commands. A formula with such a command is not typeset: each definition
# can double the length of the formula, so a dozen definitions could exhaust the memory.
_DEFINES = re.compile(
    r"\\(?:(?:re)?new(?:command|environment)|providecommand|[gex]?def|let|Declare)"
)
# Matches the beginning or end of an environment or of a \left...\right pair.
_NESTS = re.compile(r"\\\\|\\[{}]|(\\begin\b|\\left\b)|(\\end\b|\\right\b)|(\{)|(\})")


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula to typeset."""

    latex: str
    display: bool  # True: display style (large); False: inline style

    @classmethod
    def of(cls, span: TextSpan) -> Formula:
        """Build a formula from a text span, which must have the mark FORMULA."""
        return cls(span.text, display=TextMark.DISPLAY in span.marks)


@dataclass(frozen=True, slots=True)
class TypesetFormula:
    """A typeset formula as SVG. Lengths are in em; ascent and descent count from the baseline."""

    svg: str
    width: float
    ascent: float
    descent: float


@dataclass(frozen=True, slots=True)
class Undrawn:
    """A formula that is shown as LaTeX."""

    why: str  # a sentence for the user


def typeset(formula: Formula) -> TypesetFormula | Undrawn:
    """Typeset a formula, or return the reason why it cannot be typeset."""
    if why := _why_refused(formula.latex):
        return Undrawn(why)
    try:
        latex = rewritten(formula.latex)
        if _is_too_deep(latex):  # commands such as \abs become pairs of \left and \right
            return Undrawn(words.FORMULA_TOO_DEEP)
        environment = unknown_environment(latex)
        if environment is not None:
            return Undrawn(words.formula_unsupported(environment))
        return _set(latex, display=formula.display)
    except RecursionError:
        return Undrawn(words.FORMULA_TOO_DEEP)
    except Exception as error:  # noqa: BLE001 - ziamath raises many kinds of exceptions
        log.info("ziamath could not typeset a formula: %s", type(error).__name__)
        return Undrawn(words.FORMULA_INVALID)


def _why_refused(latex: str) -> str:
    """Return the reason not to try to typeset, or ""."""
    if len(latex) > MAX_LATEX:
        return words.FORMULA_TOO_LONG
    if _DEFINES.search(latex):
        return words.FORMULA_DEFINES
    return words.FORMULA_TOO_DEEP if _is_too_deep(latex) else ""


def _set(latex: str, *, display: bool) -> TypesetFormula | Undrawn:
    from ziamath.config import config  # noqa: PLC0415 - a slow import, in the helper only
    from ziamath.tex import tex2mml  # noqa: PLC0415

    from app.viewmodels.ziamath_nodes import laid_out  # noqa: PLC0415

    config.svg2 = False  # otherwise glyphs are in <symbol> and <use>, which Qt does not paint
    mathml = tex2mml(latex, inline=not display)
    root = ET.fromstring(mathml)  # noqa: S314 - tex2mml's XML defines no entities
    repair(root)
    unknown = unknown_command(root)
    if unknown is not None:
        return Undrawn(words.formula_unsupported(unknown))
    root.set("mathcolor", INK)
    made = laid_out(root, size=_SIZE, margin=_MARGIN)
    missing = next((c for c in "".join(root.itertext()) if not _has_glyph(made, c)), None)
    if missing is not None:
        return Undrawn(words.formula_character(missing))
    width, height = made.getsize()
    if not width > 0 or not height > 0:
        return Undrawn(words.FORMULA_INVALID)
    descent = -made.getyofst()
    drawn = made.svgxml()
    # Without the width, Qt also strokes each glyph with an invisible pen. In a PDF file that makes
    # a formula seven times as large and six times as slow.
    drawn.set("stroke-width", "0")
    svg = ET.tostring(drawn, encoding="unicode")
    if len(svg) > MAX_SVG:
        return Undrawn(words.FORMULA_TOO_LONG)
    return TypesetFormula(
        svg=svg,
        width=(width + 2 * _MARGIN) / _SIZE,
        ascent=(height - descent + _MARGIN) / _SIZE,
        descent=(descent + _MARGIN) / _SIZE,
    )


def _has_glyph(made: Math, character: str) -> bool:
    """Return False for a character that would be an empty box, such as an Arabic one."""
    return character.isspace() or is_wide(character) or bool(made.font.glyphindex(character))


def _is_too_deep(latex: str) -> bool:
    depth = braces = 0
    for opens, closes, brace, end in _NESTS.findall(latex):
        depth += bool(opens) - bool(closes)
        braces += bool(brace) - bool(end)
        if depth > MAX_DEPTH or braces > MAX_BRACES:
            return True
    return False
