"""Typesetting of LaTeX formulas: outlines as SVG, made by ziamath.

ziamath is pure Python and takes 1 to 40 ms per formula, so this code runs on a worker thread. The
first call imports ziamath, which takes 0.3 s.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from app.viewmodels.blocks import TextMark, TextSpan

log = logging.getLogger(__name__)

INK = "currentColor"  # the colour in a picture's SVG; replaced when the picture is painted
MAX_LATEX = 2_000  # characters; a longer formula would block the worker for all others

_SIZE = 100.0  # pixels per em while a formula is typeset
_MARGIN = 4.0  # pixels around the outlines, because some reach out of their boxes
# Labels and equation numbers: removed before typesetting.
_WITHOUT = re.compile(r"\\(?:label|tag)\*?\{[^{}]*\}|\\(?:no(?:number|tag))\b")
# Formulas that define commands are refused: each definition can double the length of the formula,
# so a dozen would exhaust the memory.
_DEFINES = re.compile(
    r"\\(?:(?:re)?new(?:command|environment)|providecommand|[gex]?def|let|Declare)"
)
_UNKNOWN = re.compile(r"\\[a-zA-Z]")  # an unknown command, which the converter keeps as a name
# Row heights and gaps of arrays as in TeX, in ziamath's em, which is 4/3 of TeX's em.
_STRUT = {"height": "0.63em", "depth": "0.27em"}  # of every row; TeX: 0.84 and 0.36
_ROW_GAP = "0.15em"  # between rows; TeX: 0.2
_JOT = "0.225em"  # between rows of aligned equations; TeX: 0.3
_COLUMN_GAP = "0.75em"  # between columns; TeX: 1
# Environments around a single formula: only their content is typeset.
_SINGLE = re.compile(r"\\(?:begin|end)\{(?:equation|multline)\*?\}")


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula to typeset."""

    latex: str
    display: bool  # True: display style (large); False: inline style

    @classmethod
    def of(cls, span: TextSpan) -> Formula:
        """Return the formula of a text span that has the mark FORMULA."""
        return cls(span.text, display=TextMark.DISPLAY in span.marks)


@dataclass(frozen=True, slots=True)
class Picture:
    """The outlines of a formula. Lengths are in em; ascent and descent are from the baseline."""

    svg: str
    width: float
    ascent: float
    descent: float


def typeset(formula: Formula) -> Picture | None:
    """Typeset a formula; return None if it is too long or cannot be understood."""
    if len(formula.latex) > MAX_LATEX or _DEFINES.search(formula.latex):
        return None
    latex = _SINGLE.sub("", _WITHOUT.sub("", formula.latex)).strip()
    try:
        return _set(latex, display=formula.display)
    except Exception as error:  # noqa: BLE001 - ziamath raises many kinds of exceptions
        log.info("ziamath could not typeset a formula: %s", type(error).__name__)
        return None


def _set(latex: str, *, display: bool) -> Picture | None:
    from ziamath.config import config  # noqa: PLC0415 - a slow import, on the worker only
    from ziamath.tex import tex2mml  # noqa: PLC0415
    from ziamath.zmath import Math  # noqa: PLC0415

    config.svg2 = False  # with <symbol> and <use>, Qt would paint no glyphs
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
    return Picture(
        svg=made.svg(),
        width=(width + 2 * _MARGIN) / _SIZE,
        ascent=(height - descent + _MARGIN) / _SIZE,
        descent=(descent + _MARGIN) / _SIZE,
    )


def _has_unknown(root: ET.Element) -> bool:
    """Return True if the MathML would show the name of an unknown command.

    Inside a text element (mtext) a backslash is ordinary text.
    """
    return any(
        _UNKNOWN.match(element.text or "")
        for element in root.iter()
        if not element.tag.endswith("mtext")
    )


def _space_arrays(root: ET.Element) -> None:
    """Set TeX's distances between rows and columns; with ziamath's, they almost touch."""
    for parent in root.iter():
        if "scriptlevel" in parent.attrib:
            continue  # an array in script size keeps its small distances
        for table in parent.findall("{*}mtable"):
            is_aligned = "columnspacing" in table.attrib
            table.set("rowspacing", _JOT if is_aligned else _ROW_GAP)
            table.set("columnspacing", table.get("columnspacing", _COLUMN_GAP))
            for cell in table.findall("{*}mtr/{*}mtd[1]"):
                cell.append(ET.Element("mspace", _STRUT))
