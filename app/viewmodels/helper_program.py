"""The program of the helper process: it lexes code and typesets formulas. No Qt.

A call that takes more CPU time than its limit ends the process, also inside a regex that never
returns. The limit is CPU time, because many formulas wait in line and the machine may be busy.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Any, cast

from app.viewmodels.highlight import GrowingHighlighter, exact_pieces, packed_lines
from app.viewmodels.lexers import Language, load_language
from app.viewmodels.typeset import Formula, typeset
from engine.worker.confinement import only_compute
from engine.worker.frames import Frame
from engine.worker.loop import answer_calls

_MAX_GROWING = 8  # number of growing code blocks whose lexer states are kept
# Seconds of CPU time for lexing one growing block, and seconds more for each of its characters.
# Ordinary code that grows by 4 characters at a time takes 10 to 60 us a character. A block that
# takes longer stays plain until it is complete.
_BLOCK_S = 0.5
_CHARACTER_S = 100e-6


@dataclass(slots=True, eq=False)
class _GrowingBlock:
    """A code block that is still being written."""

    highlighter: GrowingHighlighter
    code: str = ""
    spent_s: float = 0.0  # CPU time of all calls for this block

    @property
    def is_slow(self) -> bool:
        return self.spent_s > _BLOCK_S + _CHARACTER_S * len(self.code)


_languages: dict[str, Language | None] = {}
# Least recently used first.
_growing: OrderedDict[int, _GrowingBlock] = OrderedDict()


def _language(name: str) -> Language | None:
    if name not in _languages:
        _languages[name] = load_language(name)
    return _languages[name]


def load(name: str) -> tuple[str, str] | None:
    """Load a language. Return its display name and its file name suffix, or None if unknown."""
    language = _language(name)
    return None if language is None else (language.name, language.suffix)


def exact(name: str, code: str) -> list[list[int]]:
    """Return the packed pieces of each line of a complete block."""
    language = _language(name)
    return [] if language is None else packed_lines(exact_pieces(language, code))


def grow(name: str, block: int, start: int, text: str) -> dict[str, object] | None:
    """Lex text that was appended to a growing block. Return the colours that changed.

    Args:
        name: the language.
        block: the number of the block.
        start: the length of the code before the text.
        text: the appended text.

    Returns:
        None if the process does not have the code before the text: call again with all code. Also
        None if the language is unknown, or if the block takes too much time.
    """
    language = _language(name)
    if language is None:
        return None
    grown = _growing.pop(block, None) or _GrowingBlock(GrowingHighlighter(language))
    _growing[block] = grown
    if len(_growing) > _MAX_GROWING:
        _growing.popitem(last=False)
    if grown.is_slow or len(grown.code) != start:
        return None
    grown.code += text
    first = len(grown.highlighter.colors.lines)
    started = time.process_time()
    grown.highlighter.update(grown.code)
    grown.spent_s += time.process_time() - started
    colors = grown.highlighter.colors
    return {
        "first": first,
        "lines": packed_lines(colors.lines[first:]),
        "partial": packed_lines([colors.partial])[0],
        "comment": colors.comment,
    }


def formula(latex: str, display: bool) -> tuple[object, ...]:  # noqa: FBT001 - a JSON value
    """Typeset a formula. Return the fields of its TypesetFormula, or of its Undrawn."""
    return astuple(typeset(Formula(latex, display=display)))


_FUNCTIONS: dict[str, Callable[..., object]] = {
    function.__name__: function for function in (load, exact, grow, formula)
}


def main() -> None:
    """Carry out calls until the input ends."""
    only_compute()
    answer_calls(_answer, counts_cpu_time=True)


def _answer(call: Frame) -> Frame:
    header = cast("dict[str, Any]", call.header)
    return Frame({"value": _FUNCTIONS[header["name"]](*header["args"])})
