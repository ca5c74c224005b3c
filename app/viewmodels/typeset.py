"""LaTeX to a picture: outlines as SVG, by ziamath. Pure Python, 1 to 40 ms a formula: for a worker.

The first call imports ziamath, which takes 0.3 s.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from app.viewmodels.blocks import TextMark, TextSpan

log = logging.getLogger(__name__)

INK = "currentColor"  # in a picture's SVG, for whoever paints it to replace
MAX_LATEX = 2_000  # characters; longer ones would keep all others waiting

_SIZE = 100.0  # pixels of an em while it is set
_MARGIN = 4.0  # of these, around the outlines: some reach out of their boxes
_WITHOUT = re.compile(r"\\(?:label|tag)\*?\{[^{}]*\}|\\(?:no(?:number|tag))\b")
# Commands that people define double a formula's length with each; a dozen would fill the memory.
_DEFINES = re.compile(
    r"\\(?:(?:re)?new(?:command|environment)|providecommand|[gex]?def|let|Declare)"
)
_UNKNOWN = re.compile(r"\\[a-zA-Z]")  # what the converter does not know it takes for a name
# TeX's lengths for arrays. An em is 4/3 of one to ziamath.
_STRUT = {"height": "0.63em", "depth": "0.27em"}  # in every row: 0.84 and 0.36
_ROW_GAP = "0.15em"  # 0.2
_JOT = "0.225em"  # between rows of aligned equations: 0.3
_COLUMN_GAP = "0.75em"  # 1
_SINGLE = re.compile(r"\\(?:begin|end)\{(?:equation|multline)\*?\}")


@dataclass(frozen=True, slots=True)
class Formula:
    """What is typeset."""

    latex: str
    display: bool

    @classmethod
    def of(cls, span: TextSpan) -> Formula:
        """That of a span which is one."""
        return cls(span.text, display=TextMark.DISPLAY in span.marks)


@dataclass(frozen=True, slots=True)
class Picture:
    """A formula's outlines. Lengths are in em; ascent and descent count from the baseline."""

    svg: str
    width: float
    ascent: float
    descent: float


def typeset(formula: Formula) -> Picture | None:
    """Set a formula; None for what is too long or not understood."""
    if len(formula.latex) > MAX_LATEX or _DEFINES.search(formula.latex):
        return None
    latex = _SINGLE.sub("", _WITHOUT.sub("", formula.latex)).strip()
    try:
        return _set(latex, display=formula.display)
    except Exception as error:  # noqa: BLE001 - a typesetter raises whatever it likes; its input is anyone's
        log.info("a formula is shown as its source: %s", type(error).__name__)
        return None


def _set(latex: str, *, display: bool) -> Picture | None:
    from ziamath.config import config  # noqa: PLC0415 - takes long, and not on the main thread
    from ziamath.tex import tex2mml  # noqa: PLC0415
    from ziamath.zmath import Math  # noqa: PLC0415

    config.svg2 = False  # Qt paints no <use> of a symbol
    mathml = tex2mml(latex, inline=not display)
    root = ET.fromstring(mathml)  # noqa: S314 - nothing inside its one element can define entities
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
    """Whether a command would stand there by its name. In a text it may."""
    return any(
        _UNKNOWN.match(element.text or "")
        for element in root.iter()
        if not element.tag.endswith("mtext")
    )


def _space_arrays(root: ET.Element) -> None:
    """Rows and columns stand as far apart as in TeX; ziamath lets their ink almost touch."""
    for parent in root.iter():
        if "scriptlevel" in parent.attrib:
            continue  # small ones are dense
        for table in parent.findall("{*}mtable"):
            is_aligned = "columnspacing" in table.attrib
            table.set("rowspacing", _JOT if is_aligned else _ROW_GAP)
            table.set("columnspacing", table.get("columnspacing", _COLUMN_GAP))
            for cell in table.findall("{*}mtr/{*}mtd[1]"):
                cell.append(ET.Element("mspace", _STRUT))
