"""Typesetting of LaTeX formulas with ziamath. The result is an SVG picture.

ziamath is pure Python and takes 1 to 40 ms per ordinary formula, and minutes for deeply nested
ones. So this code runs in a helper process (helper.py). The first call also imports ziamath, which
takes 0.3 s.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from app.viewmodels.blocks import TextMark, TextSpan

log = logging.getLogger(__name__)

# Placeholder for the colour in the SVG of a picture. Painting replaces it with the text colour.
INK = "currentColor"
MAX_LATEX = 2_000  # in characters; a longer formula would delay all other formulas for too long

# Deeper nesting is not typeset. ziamath needs exponential time for nested matrices and \left.
MAX_DEPTH = 6  # levels of environments and \left; each level doubles the time, and six take 0.4 s
MAX_BRACES = 8  # levels of nested braces, as in fractions and scripts

_SIZE = 100.0  # pixels per em while a formula is typeset
_MARGIN = 4.0  # pixels on each side, because some glyphs extend beyond their boxes
# Commands for labels and equation numbers. They are removed before typesetting.
_WITHOUT = re.compile(r"\\(?:label|tag)\*?\{[^{}]*\}|\\(?:no(?:number|tag))\b")
# Commands that define other commands. A formula with such a command is not typeset: each definition
# can double the length of the formula, so a dozen definitions could exhaust the memory.
_DEFINES = re.compile(
    r"\\(?:(?:re)?new(?:command|environment)|providecommand|[gex]?def|let|Declare)"
)
# Matches the beginning or end of an environment or of a \left...\right pair.
_NESTS = re.compile(r"\\\\|\\[{}]|(\\begin\b|\\left\b)|(\\end\b|\\right\b)|(\{)|(\})")
# Matches an unknown command in the MathML: tex2mml() keeps its name as text.
_UNKNOWN = re.compile(r"\\[a-zA-Z]")
# Row heights and gaps of arrays have the same size as in TeX. One em of ziamath is 4/3 em of TeX.
_STRUT = {"height": "0.63em", "depth": "0.27em"}  # size of every row; in TeX 0.84em and 0.36em
_ROW_GAP = "0.15em"  # gap between rows; in TeX 0.2em
_JOT = "0.225em"  # gap between rows of aligned equations; in TeX 0.3em
_COLUMN_GAP = "0.75em"  # gap between columns; in TeX 1em
# Begin and end of an environment that contains a single formula. Both are removed before the
# formula is typeset.
_SINGLE = re.compile(r"\\(?:begin|end)\{(?:equation|multline)\*?\}")


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
class Picture:
    """A typeset formula as SVG. Lengths are in em; ascent and descent count from the baseline."""

    svg: str
    width: float
    ascent: float
    descent: float


def typeset(formula: Formula) -> Picture | None:
    """Typeset a formula. Return None if the formula is too long or deep, or if ziamath fails."""
    latex = formula.latex
    if len(latex) > MAX_LATEX or _DEFINES.search(latex) or _is_too_deep(latex):
        return None
    latex = _SINGLE.sub("", _WITHOUT.sub("", formula.latex)).strip()
    try:
        return _set(latex, display=formula.display)
    except Exception as error:  # noqa: BLE001 - ziamath raises many kinds of exceptions
        log.info("ziamath could not typeset a formula: %s", type(error).__name__)
        return None


def _set(latex: str, *, display: bool) -> Picture | None:
    from ziamath.config import config  # noqa: PLC0415 - a slow import, in the helper only
    from ziamath.tex import tex2mml  # noqa: PLC0415
    from ziamath.zmath import Math  # noqa: PLC0415

    config.svg2 = False  # otherwise glyphs are in <symbol> and <use>, which Qt does not paint
    mathml = tex2mml(latex, inline=not display)
    root = ET.fromstring(mathml)  # noqa: S314 - tex2mml's XML defines no entities
    if _has_unknown(root):
        return None
    root.set("mathcolor", INK)
    _space_arrays(root)
    made = Math(root, size=_SIZE, margin=_MARGIN)
    width, height = made.getsize()
    if not width > 0 or not height > 0:
        return None
    descent = -made.getyofst()
    drawn = made.svgxml()
    # Without the width, Qt also strokes each glyph with an invisible pen. In a PDF file that makes
    # a formula seven times as large and six times as slow.
    drawn.set("stroke-width", "0")
    return Picture(
        svg=ET.tostring(drawn, encoding="unicode"),
        width=(width + 2 * _MARGIN) / _SIZE,
        ascent=(height - descent + _MARGIN) / _SIZE,
        descent=(descent + _MARGIN) / _SIZE,
    )


def _is_too_deep(latex: str) -> bool:
    depth = braces = 0
    for opens, closes, brace, end in _NESTS.findall(latex):
        depth += bool(opens) - bool(closes)
        braces += bool(brace) - bool(end)
        if depth > MAX_DEPTH or braces > MAX_BRACES:
            return True
    return False


def _has_unknown(root: ET.Element) -> bool:
    """Return True if the MathML has the name of an unknown command, such as "\\foo", as text.

    Text elements (mtext) do not count, because they can have an ordinary backslash.
    """
    return any(
        _UNKNOWN.match(element.text or "")
        for element in root.iter()
        if not element.tag.endswith("mtext")
    )


def _space_arrays(root: ET.Element) -> None:
    """Set the distances between rows and columns as in TeX.

    Without this function the distances are much too small.
    """
    for parent in root.iter():
        if "scriptlevel" in parent.attrib:
            continue  # an array in script size keeps ziamath's small distances
        for table in parent.findall("{*}mtable"):
            is_aligned = "columnspacing" in table.attrib
            table.set("rowspacing", _JOT if is_aligned else _ROW_GAP)
            table.set("columnspacing", table.get("columnspacing", _COLUMN_GAP))
            for cell in table.findall("{*}mtr/{*}mtd[1]"):
                cell.append(ET.Element("mspace", _STRUT))
