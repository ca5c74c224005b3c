r"""LaTeX commands with arguments, replaced by LaTeX that latex2mathml understands.

latex2mathml does not know these commands, or reads their arguments only up to the first brace.
Pure functions. A replacement has each argument once, so the length grows by a constant factor.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from app.viewmodels.chemistry import chemistry
from app.viewmodels.latex_arguments import argument, arguments

# latex2mathml passes the attribute `class` of a group on to the MathML. So groups with these
# classes stand for what it does not know. mathml.py and array_lines.py read them.
TAG = "tag"
GROUND = "ground-"

_NAME = re.compile(r"\\(?:([a-zA-Z]+)|.)", re.DOTALL)
_SPACES = re.compile(r"\\[,;: ]|\s|~")
_WORDS = re.compile("[A-Za-z\u00a0]+")
_COLOR = re.compile(r"#?[0-9A-Za-z]{1,30}")
_TEXTS = frozenset({
    "text", "textbf", "textit", "textrm", "textsf", "texttt", "textnormal", "textup", "textmd",
    "emph", "mbox",
})  # fmt: skip
# Commands that change the font of the rest of a text.
_SWITCHES = {"bf": "textbf", "it": "textit", "rm": "textrm", "sf": "textsf", "tt": "texttt"}
# Characters of a text that latex2mathml would take for markup.
_CHARACTERS = {"{": "", "}": "", "<": "&lt;", "&": "&amp;", r"\&": "&amp;"}
# The number of arguments, and the replacement, where #1 is the first argument.
_TEMPLATES = {
    "cancelto": (2, r"{\cancel{#2}}^{#1}"),
    "Set": (1, r"\left\{#1\right\}"),
    "set": (1, r"\{#1\}"),
    "abs": (1, r"\left|#1\right|"),
    "norm": (1, r"\left\|#1\right\|"),
    "bra": (1, r"{\langle #1|}"),
    "ket": (1, r"{|#1\rangle}"),
    "braket": (1, r"{\langle #1\rangle}"),
    "Bra": (1, r"\left\langle #1\right|"),
    "Ket": (1, r"\left|#1\right\rangle"),
    "Braket": (1, r"\left\langle #1\right\rangle"),
    "vspace": (1, ""),
    "vb": (1, r"\mathbf{#1}"),
    "dv": (2, r"\frac{\mathrm{d}#1}{\mathrm{d}#2}"),
    "pdv": (2, r"\frac{\partial #1}{\partial #2}"),
    "prescript": (3, r"{}^{#1}_{#2}{#3}"),
    "SI": (2, r"#1\,\mathrm{#2}"),
    "si": (1, r"\mathrm{#1}"),
    "eqref": (1, r"\text{(#1)}"),
    "ref": (1, r"\text{#1}"),
    "label": (1, ""),
    "require": (1, ""),
}


def expanded(latex: str) -> str:
    """Replace the commands of this module, also inside arguments."""
    pieces: list[str] = []
    done = 0
    for match in _NAME.finditer(latex):
        count, build = _COMMANDS.get(match[1] or "", (0, None))
        if match.start() < done or build is None:
            continue
        found = arguments(latex, match.end(), count)
        if found is not None:
            pieces += latex[done : match.start()], build(*found[0])
            done = found[1]
    return "".join(pieces) + latex[done:]


def _filled(template: str, *args: str) -> str:
    first, *others = template.split("#")
    return first + "".join(expanded(args[int(part[0]) - 1]) + part[1:] for part in others)


def _operator(command: str, name: str) -> str:
    r"""Keep the spaces of an operator: \operatorname{arg\,max}."""
    plain = _SPACES.sub("\u00a0", name)
    if _WORDS.fullmatch(plain):
        return rf"\{command}{{{plain}}}"
    return rf"\mathop{{\mathrm{{{expanded(name)}}}}}"


def _text(command: str, content: str) -> str:
    r"""Move formulas and other fonts out of a text: \text{for $x$} becomes \text{for }x."""
    pieces: list[str] = []
    plain, at = "", 0
    while at < len(content):
        piece, end = _special(content, at)
        if piece is None:
            plain += _CHARACTERS.get(content[at:end], content[at:end])
        else:
            pieces += rf"\{command}{{{plain}}}" if plain else "", piece
            plain = ""
        at = end
    return "".join(pieces) + (rf"\{command}{{{plain}}}" if plain or not pieces else "")


def _special(content: str, at: int) -> tuple[str | None, int]:
    """Return the replacement of a formula or command in a text, and its end.

    The replacement is None for ordinary text, which ends after a character or a command.
    """
    if content[at] == "$":
        end = _end_of_formula(content, at + 1)
        return (None, at + 1) if end < 0 else (expanded(content[at + 1 : end]), end + 1)
    name = _NAME.match(content, at)
    if name is None:
        return None, at + 1
    if name[1] in _SWITCHES:
        return _text(_SWITCHES[name[1]], content[name.end() :].lstrip()), len(content)
    found = argument(content, name.end())
    if found is None or name[1] is None:
        return None, name.end()
    if name[1] in {"underline", "sout", "phantom", "hphantom"}:
        return rf"\{name[1]}{{{_text('text', found[0])}}}", found[1]
    count, build = _COMMANDS.get(name[1], (0, None))
    return (None if build is None or count > 1 else build(found[0])), found[1]


def _end_of_formula(content: str, at: int) -> int:
    while at < len(content) and content[at] != "$":
        at += 2 if content[at] == "\\" else 1
    return at if at < len(content) else -1


def _tag(content: str) -> str:
    return rf"\class{{{TAG}}}{{{_text('text', content)}}}"


def _numbered(content: str) -> str:
    return _tag(f"({content})")


def _colorbox(color: str, content: str) -> str:
    ground = GROUND + color if _COLOR.fullmatch(color) else ""
    return rf"\class{{{ground}}}{{{_text('text', content)}}}"


def _framed_colorbox(_: str, color: str, content: str) -> str:
    return rf"\boxed{{{_colorbox(color, content)}}}"


def _chemistry(source: str) -> str:
    return f"{{{expanded(chemistry(source))}}}"


_COMMANDS: dict[str, tuple[int, Callable[..., str]]] = {
    **{name: (count, partial(_filled, template)) for name, (count, template) in _TEMPLATES.items()},
    **{name: (1, partial(_text, name)) for name in _TEXTS},
    **{name: (1, partial(_operator, name)) for name in ("operatorname", "operatornamewithlimits")},
    "colorbox": (2, _colorbox),
    "fcolorbox": (3, _framed_colorbox),
    "tag": (1, _numbered),
    "tagstar": (1, _tag),
    "ce": (1, _chemistry),
}
