r"""LaTeX rewritten for latex2mathml, which ziamath uses. Pure functions.

latex2mathml does not know some environments and commands that models write. They are replaced by
LaTeX that means the same, or looks almost the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from unicodedata import normalize

from app.viewmodels.array_lines import marked
from app.viewmodels.latex_commands import expanded

_COMMANDS = {
    # Equation numbers, and places at which a line may break, are not drawn.
    "nonumber": "", "notag": "", "allowbreak": "", "nobreak": "", "hfill": r"\quad ",
    "newline": r"\\",
    "bmod": r"\ \mathrm{mod}\ ",
    # Signs above and below.
    "overgroup": r"\overparen", "overarc": r"\overparen", "wideparen": r"\overparen",
    "undergroup": r"\underparen", "utilde": r"\underset{\sim}",
    "overrightharpoon": r"\overset{\rightharpoonup}", "Overrightarrow": r"\overset{\Rightarrow}",
    "overleftharpoon": r"\overset{\leftharpoonup}",
    # Colours that KaTeX knows as commands, and other names of a font.
    "blue": r"\textcolor{blue}", "green": r"\textcolor{green}", "red": r"\textcolor{red}",
    "mathds": r"\mathbb", "mathbbm": r"\mathbb",
    # Letters of a text.
    "OE": "Œ", "oe": "œ", "AE": "Æ", "ae": "æ", "AA": "Å", "aa": "å", "O": "Ø", "o": "ø",
    "ss": "ß", "i": "\u0131", "j": "\u0237", "textdollar": "$", "pounds": "£", "maltese": "✠",
    "P": "¶", "vcentcolon": ":",
}  # fmt: skip
# Combining characters of the accents in a text, such as \"{a}.
_ACCENTS = {
    "'": "\u0301", "`": "\u0300", "^": "\u0302", "~": "\u0303", '"': "\u0308", "=": "\u0304",
    ".": "\u0307", "u": "\u0306", "v": "\u030c", "H": "\u030b", "r": "\u030a",
}  # fmt: skip
_ALIGN = {"begin": r"\begin{align*}", "end": r"\end{align*}"}
_RIGHT_CASES = {"begin": r"\left.\begin{array}{ll}", "end": r"\end{array}\right\}"}
_NOTHING = {"begin": "", "end": ""}  # for an environment that contains a single formula
# The beginning and the end that replace those of an environment. Arguments are left out.
_ENVIRONMENTS = {
    "equation": _NOTHING,
    "subequations": _NOTHING,
    "multline": _NOTHING,
    # Equations get no numbers: those of each formula would begin at 1.
    "align": _ALIGN,
    "alignat": _ALIGN,
    "flalign": _ALIGN,
    "aligned": {"begin": r"\begin{aligned}", "end": r"\end{aligned}"},
    "alignedat": {"begin": r"\begin{aligned}", "end": r"\end{aligned}"},
    "gathered": {"begin": r"\begin{gathered}", "end": r"\end{gathered}"},
    "array": {"begin": r"\begin{array}", "end": r"\end{array}"},
    "eqnarray": {"begin": r"\begin{array}{rcl}", "end": r"\end{array}"},
    "dcases": {"begin": r"\begin{cases}", "end": r"\end{cases}"},
    "rcases": _RIGHT_CASES,
    "drcases": _RIGHT_CASES,
}
# Environments with a formula in each line and no columns, and one that tex2mml() renames.
_ROWS = frozenset({"gather", "gather*", "gathered", "subarray", "aligned"})
_BEGIN = re.compile(r"\\begin\s*\{([^{}]*)\}")


def rewritten(latex: str) -> str:
    """Return LaTeX with the same meaning that latex2mathml understands."""
    for pattern, replacement in _RULES:
        latex = pattern.sub(replacement, latex)
    latex = marked(expanded(latex)).strip()
    while latex.endswith(r"\\"):  # the end of a last line, which latex2mathml would leave empty
        latex = latex[:-2].rstrip()
    return latex


def unknown_environment(latex: str) -> str | None:
    """Return an environment that latex2mathml would draw as an ordinary row."""
    from latex2mathml.commands import MATRICES  # noqa: PLC0415 - in the helper only

    names = _BEGIN.findall(latex)
    return next((name for name in names if name not in _ROWS and f"\\{name}" not in MATRICES), None)


def _command(match: re.Match[str]) -> str:
    return _COMMANDS.get(match[1], match[0])


def _environment(match: re.Match[str]) -> str:
    edge, name, star = match[1], match[2], match[3]
    if star and name.endswith("matrix"):
        return rf"\{edge}{{{name}}}"  # its columns are centred instead of aligned
    return _ENVIRONMENTS[name][edge] if name in _ENVIRONMENTS else match[0]


def _primes(match: re.Match[str]) -> str:
    r"""Join primes and a superscript: x''^2 becomes x^{\prime\prime 2}."""
    primes, script = r"\prime" * len(match[1]), match[2]
    return f"^{{{primes} " if script == "{" else f"^{{{primes} {script}}}"


def _accented(match: re.Match[str]) -> str:
    r"""Compose a letter and its accent, which takes the place of the dot of \i and \j."""
    letter = next(filter(None, match.groups()[1:]))
    return normalize("NFC", letter.lstrip("\\") + _ACCENTS[match[1]])


_RULES: list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = [
    (re.compile(r"\\tag\*"), r"\\tagstar"),
    (re.compile(r"\\operatorname\*"), r"\\operatornamewithlimits"),
    (re.compile(r"\\not\s?="), r"\\ne "),
    (re.compile(r"\\(['`^~\"=.])\s?(?:\{(\\?[a-zA-Z])\}|(\\[ij]\b|[a-zA-Z]))"), _accented),
    (re.compile(r"\\([uvHr])(?:\s?\{(\\?[a-zA-Z])\}|\s([a-zA-Z])|(\\[ij]\b))"), _accented),
    (re.compile(r"\\([a-zA-Z]+)"), _command),
    (
        re.compile(
            r"\\(begin|end)\s?\{([a-zA-Z]{1,12})(\*?)\}(?:\s?\[[a-z]\])?(?:\s?\{\d{1,2}\})?"
        ),
        _environment,
    ),
    # Distances between the rows of a table.
    (re.compile(r"\\\\\s?\[-?[\d.]{1,9}\s?[a-z]{2}\]"), r"\\\\"),
    (re.compile(r"\\hspace\*"), r"\\hspace"),
    # A bracket of a given size that is left out.
    (re.compile(r"\\[bB]igg?[lrm]?\s?\."), ""),
    (re.compile(r"('{1,9})\s?\^\s?(\{|\\[a-zA-Z]+|[^\\\s])"), _primes),
]
