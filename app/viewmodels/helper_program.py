"""The program of the helper process: it lexes code and typesets formulas. No Qt.

The process reads one JSON line per call from its input and writes one JSON line per result to its
output. A call that takes more CPU time than its limit ends the process by a signal, also inside a
regex that never returns.
"""

from __future__ import annotations

import json
import signal
import sys
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import astuple

from app.viewmodels.highlight import GrowingHighlighter, exact_pieces, packed_lines
from app.viewmodels.lexers import Language, load_language
from app.viewmodels.typeset import Formula, typeset

_MAX_GROWING = 8  # number of growing code blocks whose lexer states are kept

_languages: dict[str, Language | None] = {}
# Highlighters of growing blocks and the code that they have, least recently used first.
_growing: OrderedDict[int, tuple[GrowingHighlighter, str]] = OrderedDict()


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
        None if the process does not have the code before the text: call again with all code.
    """
    language = _language(name)
    highlighter, code = _growing.pop(block, (None, ""))
    if language is None or len(code) != start:
        if language is None or start:
            return None
        highlighter, code = None, ""
    highlighter = highlighter or GrowingHighlighter(language)
    code += text
    first = len(highlighter.colors.lines)
    highlighter.update(code)
    _growing[block] = highlighter, code
    if len(_growing) > _MAX_GROWING:
        _growing.popitem(last=False)
    colors = highlighter.colors
    return {
        "first": first,
        "lines": packed_lines(colors.lines[first:]),
        "partial": packed_lines([colors.partial])[0],
        "comment": colors.comment,
    }


def formula(latex: str, display: bool) -> tuple[object, ...] | None:  # noqa: FBT001 - a JSON value
    """Typeset a formula. Return the fields of its Picture, or None."""
    picture = typeset(Formula(latex, display=display))
    return None if picture is None else astuple(picture)


_FUNCTIONS: dict[str, Callable[..., object]] = {
    function.__name__: function for function in (load, exact, grow, formula)
}


def main() -> None:
    """Carry out calls until the input ends."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, request["limit_s"])
        try:
            answer = {"value": _FUNCTIONS[request["name"]](*request["args"])}
        except Exception as error:  # noqa: BLE001 - a lexer can raise any exception
            answer = {"error": repr(error)}
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.write(json.dumps(answer, separators=(",", ":")) + "\n")
        sys.stdout.flush()
