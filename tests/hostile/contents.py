"""Hostile contents of messages: texts that are slow to parse, to lay out, to lex or to typeset.

CONTENTS has a function for each kind. It takes the number of characters that the text should have.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, islice
from typing import Final

Content = Callable[[int], str]

LENGTH: Final = 100_000  # characters of a hostile text, if nothing else is said


def _repeated(unit: str) -> Content:
    return lambda length: unit * (length // len(unit))


def _between(start: str, unit: str, end: str) -> Content:
    def make(length: int) -> str:
        return start + unit * ((length - len(start) - len(end)) // len(unit)) + end

    return make


def _nested(start: str, end: str) -> Content:
    def make(length: int) -> str:
        depth = length // (len(start) + len(end))
        return start * depth + "x" + end * depth

    return make


def _numbered(line: str) -> Content:
    """Repeat a line in which {} is the number of the line."""

    def make(length: int) -> str:
        lines = (line.format(number) for number in count())
        return "".join(islice(lines, max(1, length // (len(line) + 3))))

    return make


def _short(content: Content, length: int) -> Content:
    """Limit a content to a length. Longer formulas and code are not typeset or lexed at all."""
    return lambda wanted: content(min(wanted, length))


def _table(columns: int) -> Content:
    def make(length: int) -> str:
        row = "|" + " cell |" * columns + "\n"
        head = row + "|" + "---|" * columns + "\n"
        return head + row * max(1, (length - len(head)) // len(row))

    return make


def _staircase(unit: str) -> Content:
    """Indent each line by one unit more than the line before."""

    def make(length: int) -> str:
        lines: list[str] = []
        total = 0
        while total < length:
            lines.append(unit * len(lines) + "- x\n")
            total += len(lines[-1])
        return "".join(lines)

    return make


def _fenced(language: str, content: Content) -> Content:
    return lambda length: f"```{language}\n{content(length)}\n```\n"


def _formula(content: Content) -> Content:
    return lambda length: f"$$\n{content(min(length, 1_990))}\n$$\n"


_MATRIX = _between(r"\begin{pmatrix}", r"\begin{pmatrix}a&b\\c&d\end{pmatrix}&", r"0\end{pmatrix}")
# Languages whose Pygments lexers search for a very long time in some texts.
_SLOW_LEXERS = (
    "autohotkey",
    "xpp",
    "easytrieve",
    "actionscript",
    "ambienttalk",
    "perl",
    "javascript",
)

CONTENTS: dict[str, Content] = {
    "plain text": _repeated("word " * 12 + "end. "),
    "paragraphs": _repeated("word " * 40 + "end.\n\n"),
    # Blocks
    "setext headings": _repeated("a\n===\n"),
    "setext dashes": _repeated("a\n---\n"),
    "setext after a long paragraph": _between("", "line\n", "===\n"),
    "atx headings": _repeated("# a\n"),
    "rules": _repeated("***\n"),
    "short lines": _repeated("a\n"),
    "blank lines": _repeated("\n"),
    "blanks": _repeated(" "),
    "tabs": _repeated("\t"),
    "hard breaks": _repeated("a  \n"),
    "quotes nested": _nested("> ", ""),
    "quotes deep": _repeated("> " * 50 + "x\n"),
    "quotes and lists": _repeated("> - " * 25 + "x\n"),
    "lazy quotes": _between("> ", "a\n", ""),
    "list": _repeated("- a\n"),
    "list of lists": _repeated("- - - - - - - - a\n"),
    "list numbered": _repeated("1. a\n"),
    "list indented": _staircase("  "),
    "list deep": _nested("- ", ""),
    "list loose": _repeated("- a\n\n  b\n\n"),
    "list of code": _repeated("-     code\n"),
    "tasks": _repeated("- [ ] a\n"),
    "definitions": _numbered("[a{0}]: http://x.org/{0}\n"),
    "definition unclosed": _repeated("[a]: <b"),
    "html": _repeated("<div>\n"),
    "html comments": _repeated("<!-- a "),
    "html tags": _repeated("<a b=c "),
    "html declarations": _repeated("<!A "),
    "processing instructions": _repeated("<?"),
    "fences": _repeated("```\n"),
    "fence unclosed": _between("```\n", "line\n", ""),
    "fence of tildes": _repeated("~~~x\n"),
    "fence with one line": _between("```python\n", "x = 1; ", "\n```\n"),
    "code indented": _repeated("    x\n"),
    "table long": _table(3),
    "table wide": _table(2_000),
    "table of one row": _table(5_000),
    "table of pipes": _repeated("|" * 50 + "\n"),
    "table without rows": _repeated("|a|\n|-|\n"),
    "table with long cells": _between("|a|b|\n|-|-|\n", "| " + "word " * 1000 + "|x|\n", ""),
    # Inline
    "emphasis": _repeated("*a **b "),
    "emphasis closed": _repeated("**a** *b* "),
    "emphasis nested": _nested("*a **b", "** c*"),
    "emphasis mixed": _repeated("*_**__"),
    "asterisks": _repeated("*"),
    "underscores": _repeated("a_"),
    "strikes": _repeated("~~a"),
    "backticks": lambda length: "".join(f"a{'`' * n}" for n in range(int((2 * length) ** 0.5))),
    "backticks alone": _repeated("`"),
    "backticks open": _repeated("`a "),
    "brackets": _repeated("["),
    "brackets closed": _nested("[", "]"),
    "links open": _repeated("[a]("),
    "links nested": _nested("[a](", ")"),
    "links": _numbered("[a](http://x.org/{}) "),
    "images nested": _nested("![", "](a)"),
    "images": _repeated("![a](b) "),
    "references": _repeated("[a][b] "),
    "autolinks": _repeated("<http://a"),
    "addresses": _repeated("http://a.org/b "),
    "entities": _repeated("&amp;"),
    "entities unclosed": _repeated("&#x"),
    "escapes": _repeated("\\*"),
    "backslashes": _repeated("\\"),
    # Characters
    "soft hyphens": _repeated("a\u00ad"),
    "one word": _repeated("x"),
    "one sentence in chinese": _repeated("\u6c34"),
    "emoji": _repeated("\U0001f469\u200d\U0001f467"),
    "combining marks": _between("a", "\u0301", ""),
    "zero width": _repeated("a\u200b"),
    "word joiners": _repeated("a\u2060"),
    "bidi overrides": _repeated("\u202ea\u202c"),
    "bidi isolates": _repeated("\u2067a"),
    "right to left": _repeated("\u05d0 a "),
    "controls": _repeated("\x01\x1b[2J\x00"),
    "line separators": _repeated("a\u2028"),
    "carriage returns": _repeated("a\r"),
    "private use": _repeated("\ue000\U000f0000"),
    "surrogates": _repeated("\ud800"),
    "object replacements": _repeated("\ufffc"),
    # Formulas
    "formulas": _numbered("The value $x_{{{0}}}^2$ of {0}.\n\n"),
    "formula unclosed": _between("$$\n", "x + ", ""),
    "formulas unclosed": _repeated("$x "),
    "dollars": _repeated("$"),
    "display openings": _repeated("\\["),
    "environments": _repeated("\\begin{align}\n"),
    "formula deep": _formula(_nested(r"\sqrt{", "}")),
    "formula fractions": _formula(_nested(r"\frac{1}{", "}")),
    "formula delimiters": _formula(_nested(r"\left(", r"\right)")),
    "formula open delimiters": _formula(_repeated(r"\left(")),
    "formula matrix": _formula(_MATRIX),
    "formula matrices deep": _formula(_nested(r"\begin{matrix}a&", r"\end{matrix}")),
    "formula scripts": _formula(_nested("x^{", "}")),
    "formula primes": _formula(_repeated("x'")),
    "formula braces": _formula(_nested("{", "}")),
    "formula backslashes": _formula(_repeated("\\\\")),
    "formulas of matrices": _numbered(
        "$$\n" + r"\begin{{matrix}}a_{{{0}}}&b\\c&d\end{{matrix}}" * 8 + "\n$$\n\n"
    ),
    "mail of formulas": lambda length: "".join(
        "> " * depth + r"$\left(\left(\left(x_{" + str(depth) + r"}\right)\right)\right)$" + "\n\n"
        for depth in range(min(100, length // 60))
    ),
    # Code
    **{
        f"code {language}": _fenced(language, _short(_repeated("a "), 20_000))
        for language in _SLOW_LEXERS
    },
    **{
        f"code {language} of lines": _fenced(language, _repeated("a b\n"))
        for language in _SLOW_LEXERS
    },
    "code quotes": _fenced("python", _repeated("'''\n\"\"\"\n")),
    "code comments": _fenced("c", _repeated("/* a\n")),
    "code brackets": _fenced("json", _repeated("[{\n")),
    "code blanks": _fenced("yaml", _short(_repeated(" "), 1_900)),
    "code tags": _fenced("html", _repeated("<a <b\n")),
    "code in many languages": lambda length: (
        "".join(f"```{language}\nx = 1\n```\n\n" for language in _SLOW_LEXERS) * (length // 200)
    ),
}
