"""LaTeX to a picture: outlines as SVG, by ziamath. Pure Python, 1 to 40 ms a formula: for a worker.

The first call imports ziamath, which takes 0.3 s.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass

from app.viewmodels.blocks import Mark, Span

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
_SINGLE = re.compile(r"\\(?:begin|end)\{(?:equation|multline)\*?\}")


@dataclass(frozen=True, slots=True)
class Formula:
    """What is typeset."""

    latex: str
    display: bool

    @classmethod
    def of(cls, span: Span) -> Formula:
        """That of a span which is one."""
        return cls(span.text, display=Mark.DISPLAY in span.marks)


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
    from ziamath.zmath import Math  # noqa: PLC0415

    config.svg2 = False  # Qt paints no <use> of a symbol
    made = Math.fromlatex(latex, size=_SIZE, color=INK, inline=not display, margin=_MARGIN)
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
