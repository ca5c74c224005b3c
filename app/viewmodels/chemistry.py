r"""LaTeX for chemical formulas and equations in the notation of mhchem: `\ce{2H2 + O2 -> 2H2O}`.

Supported: subscripts, charges, isotopes, coefficients, bonds, hydrates, arrows with text above and
below, gas and precipitate arrows, `$...$`, and LaTeX commands. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from app.viewmodels.latex_arguments import argument

# The order matters: a longer arrow comes before its beginning.
_ARROWS = {
    "<=>>": r"\xrightleftharpoons", "<<=>": r"\xrightleftharpoons",
    "<-->": r"\xleftrightarrow", "<=>": r"\xrightleftharpoons",
    "<->": r"\xleftrightarrow", "->": r"\xrightarrow", "<-": r"\xleftarrow",
}  # fmt: skip
_PART = re.compile(
    r"(?P<arrow><=>>|<<=>|<-->|<=>|<->|->|<-)|(?P<command>\\(?:[a-zA-Z]+|.))"
    r"|(?P<math>\$(?:\\.|[^$\\])*\$)|(?P<letters>[a-zA-Z]+)|(?P<number>\d+(?:[./]\d+)?)"
    r"|(?P<script>[_^])|(?P<sign>[+-])|(?P<space>\s+)|(?P<other>.)",
    re.DOTALL,
)
_CHARGE = re.compile(r"\d*[+-]+|\d+|[a-zA-Z]|[^\s{}\\$]")  # a superscript without braces
_WHOLE = re.compile(r"\d+")
_OTHERS = {"=": "{=}", "#": r"{\equiv}", "*": r"\cdot ", ".": r"\cdot ", "~": "{-}"}
_MARKS = {"^": r"\uparrow ", "v": r"\downarrow "}  # a gas and a precipitate
# A sign before one of these characters, or at the end, is a charge.
_ENDS = ("", *" \t\n)],;}")


def chemistry(source: str) -> str:
    r"""Return LaTeX for the argument of `\ce`."""
    return "".join(_Notation(source).pieces())


class _Notation:
    """The notation of mhchem, read from left to right."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0  # where the next part begins
        # True after an atom or a bracket: a number is its subscript, and a sign its charge.
        self._is_attached = False
        # The reader of each kind of part, which is the name of a group of _PART.
        self._readers = {
            "arrow": self._arrow, "command": self._command, "math": self._math,
            "letters": self._letters, "number": self._number, "script": self._script,
            "space": self._space, "sign": self._sign, "other": self._other,
        }  # fmt: skip

    def pieces(self) -> Iterator[str]:
        """Yield the LaTeX of each part."""
        while (part := _PART.match(self._source, self._at)) is not None:
            self._at = part.end()
            text = part.group()
            if text in _MARKS and self._is_alone(part.start()):
                yield _MARKS[text]
            else:
                yield self._readers[part.lastgroup or ""](text)

    def _is_alone(self, start: int) -> bool:
        before = self._source[max(0, start - 1) : start]
        return not before.strip() and not self._source[self._at : self._at + 1].strip()

    def _space(self, _: str) -> str:
        self._is_attached = False
        return ""

    def _letters(self, text: str) -> str:
        self._is_attached = True
        return rf"\mathrm{{{text}}}"

    def _math(self, text: str) -> str:
        self._is_attached = True
        return text[1:-1]

    def _command(self, text: str) -> str:
        start = self._at
        while self._source.startswith("{", self._at) and (
            found := argument(self._source, self._at)
        ):
            self._at = found[1]
        self._is_attached = True
        return f"{text}{self._source[start : self._at]} "

    def _number(self, text: str) -> str:
        if self._is_attached:
            whole = _WHOLE.match(text)
            number = text if whole is None else whole.group()
            self._at -= len(text) - len(number)  # the rest is a hydrate: CuSO4.5H2O
            return f"_{{{number}}}"
        top, _, bottom = text.partition("/")
        return rf"\tfrac{{{top}}}{{{bottom}}}\," if bottom else rf"{text}\,"

    def _script(self, sign: str) -> str:
        """Return a superscript or subscript. Without an atom before, it belongs to an isotope."""
        if self._source.startswith(("{", "\\"), self._at):
            found = argument(self._source, self._at)
        else:
            match = _CHARGE.match(self._source, self._at)
            found = None if match is None else (match.group(), match.end())
        text, self._at = found or ("", self._at)
        base = "" if self._is_attached else "{}"
        self._is_attached = True
        return f"{base}{sign}{{{text}}}"

    def _arrow(self, arrow: str) -> str:
        """Return an arrow with the texts above and below it, which follow in brackets."""
        texts: list[str] = []
        while len(texts) < 2 and self._source.startswith("[", self._at):
            end = self._source.find("]", self._at)
            if end < 0:
                break
            texts.append(chemistry(self._source[self._at + 1 : end]))
            self._at = end + 1
        self._is_attached = False
        below = f"[{texts[1]}]" if len(texts) > 1 else ""
        return f"{_ARROWS[arrow]}{below}{{{texts[0] if texts else ''}}}"

    def _sign(self, sign: str) -> str:
        following = self._source[self._at : self._at + 1]
        is_charge = self._is_attached and following in _ENDS
        self._is_attached = is_charge
        if is_charge:
            return f"^{{{sign}}}"
        return sign if sign == "+" else "{-}"

    def _other(self, text: str) -> str:
        if text == "{":
            inner, self._at = argument(self._source, self._at - 1) or ("", self._at)
            self._is_attached = True
            return f"{{{chemistry(inner)}}}"
        self._is_attached = text in {")", "]"}
        return _OTHERS.get(text, text)
