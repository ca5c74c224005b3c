r"""Hostile texts for the transcript: valid content of a message that is slow to parse or to lay out.

Each kind is a function of a size. It returns a text of about that many characters.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, islice

Maker = Callable[[int], str]

# Ordinary text, the baseline of the measurements.
PLAIN = "Plain text of ordinary words, in sentences that end. "

# Pygments lexers that need quadratic or exponential time, with the text that makes them slow.
_SLOW_CODE = {
    "autohotkey": "\n" * 20 + " " * 1_900,
    "xpp": "a\n",
    "easytrieve": "\t" * 1_900 + "\n",
    "actionscript": "/a" * 1_000 + "\n",
    "ambienttalk": "a:" * 1_000 + "\n",
    "perl": "$a =~ s{" * 200 + "\n",
    "ruby": "%w(" * 500 + "\n",
    "scala": "a[" * 1_000 + "\n",
    "cpp": "a b " * 450 + "\n",
    "csharp": "a<b " * 450 + "\n",
    "java": "a b. " * 380 + "\n",
    "python": "f'{" * 600 + "\n",
    "javascript": "`${" * 600 + "\n",
    "html": "<a b=" * 380 + "\n",
    "latex": "\\a{" * 600 + "\n",
    "bash": "$(" * 900 + "\n",
    "yaml": "a: [" * 450 + "\n",
    "json": '{"a":' * 380 + "\n",
    "sql": "(select " * 240 + "\n",
    "haskell": "a -> " * 380 + "\n",
}


# Code for which the lexer of autohotkey needs cubic time: minutes.
ENDLESS_CODE = ("\n" * 20 + " " * 1_900) * 50


def repeated(unit: str) -> Maker:
    """Return a maker that repeats a unit up to the size."""
    return lambda size: unit * (size // len(unit) + 1)


def _numbered(unit: str) -> Maker:
    """Return a maker that repeats a unit with another number in each copy."""

    def make(size: int) -> str:
        units = (unit.format(number) for number in count())
        return "".join(islice(units, size // len(unit.format(10_000)) + 1))

    return make


def _code(language: str) -> Maker:
    unit = _SLOW_CODE[language]
    return lambda size: f"```{language}\n{repeated(unit)(size)}\n```\n"


def _table(num_columns: int, cell: str = "a") -> Maker:
    row = f"|{f'{cell}|' * num_columns}\n"
    head = f"{row}|{'-|' * num_columns}\n"
    return lambda size: head + repeated(row)(max(0, size - len(head)))


def _square_table(size: int) -> str:
    """Return a table with as many rows as columns."""
    side = max(1, int((size / 2) ** 0.5))
    row = f"|{'a|' * side}\n"
    return row + f"|{'-|' * side}\n" + row * side


def _wide_table(size: int) -> str:
    return _table(max(1, size // 6))(size)


def _nested(opening: str, closing: str, middle: str = "a") -> Maker:
    def make(size: int) -> str:
        depth = size // (len(opening) + len(closing))
        return opening * depth + middle + closing * depth

    return make


def _indented(marker: str) -> Maker:
    """Return a maker of items, each one level deeper than the one before, up to 40 levels."""

    def make(size: int) -> str:
        unit = "".join(f"{' ' * (len(marker) * level)}{marker}a\n" for level in range(40))
        return repeated(unit)(size)

    return make


def _matrix(depth: int) -> Maker:
    inner = "1"
    for _ in range(depth):
        inner = rf"\begin{{pmatrix}} {inner} & 1 \\ 1 & 1 \end{{pmatrix}}"
    return repeated(f"$$\n{inner}\n$$\n\n")


def _left_chain(depth: int) -> Maker:
    formula = r"\left( " * depth + "x" + r" \right)" * depth
    return repeated(f"$${formula}$$\n\n")


def _references(size: int) -> str:
    definitions = _numbered("[a{0}]: /u{0}\n")(size // 2)
    return _numbered("[a{0}] ")(size // 2) + "\n\n" + definitions


CONTENTS: dict[str, Maker] = {
    # Blocks
    "setext headings": repeated("a\n=\n"),
    "setext without end": repeated("a\nb\n"),
    "setext underlines": repeated("=\n"),
    "atx headings": repeated("# a\n"),
    "rules": repeated("---\n"),
    "short lines": repeated("a\n"),
    "short paragraphs": repeated("a\n\n"),
    "empty lines": repeated("\n"),
    "hard breaks": repeated("a  \n"),
    "long line": repeated("word "),
    "indented code": repeated("    a\n"),
    "empty fences": repeated("```\n```\n"),
    "open fences": repeated("```\n~~~\n"),
    "fence of short lines": lambda size: f"```\n{repeated('a' + chr(10))(size)}```\n",
    "fence of one line": lambda size: f"```python\n{'a' * size}\n```\n",
    "references": _references,
    "open references": repeated("[a]: <"),
    "link titles without end": repeated('[a]: b "c\n'),
    # Lists and quotes
    "bullets": repeated("- a\n"),
    "empty bullets": repeated("-\n"),
    "numbers": _numbered("{}. a\n"),
    "tasks": repeated("- [ ] a\n"),
    "indented bullets": _indented("- "),
    "indented numbers": _indented("1. "),
    "bullets in one line": repeated("- "),
    "quotes in one line": repeated("> "),
    "quotes and bullets": repeated("> - "),
    "quotes": repeated("> a\n"),
    "lazy quotes": lambda size: "> a\n" + "b\n" * (size // 2),
    "long item": lambda size: "- a\n" + "  b\n" * (size // 4),
    "long item of paragraphs": lambda size: "- a\n\n" + "  b\n\n" * (size // 5),
    "bullets of every kind": repeated("- a\n+ a\n* a\n"),
    # Emphasis, code, links
    "open stars": repeated("**a "),
    "stars": lambda size: "*" * size,
    "alternating stars": repeated("*_"),
    "marks of a list": repeated("1."),
    "mixed emphasis": repeated("*a **b _c __d ~~e "),
    "closed emphasis": repeated("*a* **b** _c_ ~~d~~ "),
    "nested emphasis": _nested("*a ", " b*"),
    "underscores": repeated("_a__b_"),
    "open strikes": repeated("~~a "),
    "backticks": lambda size: "".join("`" * (n % 200 + 1) + "a" for n in range(size // 100)),
    "open backticks": repeated("`a``b"),
    "open brackets": lambda size: "[" * size,
    "closing brackets": lambda size: "]" * size,
    "nested brackets": _nested("[", "]"),
    "open links": repeated("[a]("),
    "nested links": _nested("[", "](b)"),
    "nested images": _nested("![", "](b)"),
    "link targets": repeated("[a](<b"),
    "links": _numbered("[a{0}](/{0}) "),
    "autolinks": repeated("<https://a.b> "),
    "backslashes": lambda size: "\\" * size,
    # HTML and entities
    "open tags": repeated("<a "),
    "tags": repeated("<b>a</b>"),
    "comments": repeated("<!-- a"),
    "instructions": repeated("<?"),
    "declarations": repeated("<!A "),
    "data sections": repeated("a <![CDATA["),
    "html block": repeated("<div>\n"),
    "entities": repeated("&amp;"),
    "unknown entities": repeated("&a"),
    # Tables
    "long table": _table(3),
    "long table of text": _table(4, "**some** words"),
    "wide table": _wide_table,
    "square table": _square_table,
    "table of formulas": _table(3, "$x^2$"),
    "pipes": lambda size: "|" * size,
    "table heads": repeated("|a|\n|-|\n"),
    # Formulas
    "open dollars": repeated("$a "),
    "dollars": lambda size: "$" * size,
    "open formulas": repeated("$$\na\n"),
    "open parentheses": repeated(r"\(a "),
    "open environments": repeated("\\begin{align}\na\n\n"),
    "formulas": _numbered("$x_{{{}}}$ "),
    "deep matrices": _matrix(30),
    "left chains": _left_chain(120),
    "formula of scripts": repeated("$$" + "x^{" * 300 + "}" * 300 + "$$\n\n"),
    "quoted formulas": repeated("> > > $$\n> > > " + r"\frac{1}{" * 80 + "}" * 80 + "\n> > > $$\n"),
    # Characters
    "soft hyphens": repeated("a\u00ad"),
    "one word": lambda size: "a" * size,
    "one wide word": lambda size: "\u4e2d" * size,
    "combining": lambda size: "a" + "\u0301" * size,
    "combined": repeated("a\u0301\u0323\u0308"),
    "bidi controls": repeated("\u202ea\u202b\u05d0\u202c"),
    "open isolates": repeated("\u2067a\u2066\u05d0"),
    "zero width joiners": repeated("\U0001f468\u200d"),
    "zero width spaces": lambda size: "\u200b" * size,
    "emoji": repeated("\U0001f468\u200d\U0001f469\u200d\U0001f467 "),
    "controls": repeated("\x01\x02\x7f"),
    "line separators": repeated("a\u2028"),
    "tabs": repeated("\ta"),
    "no-break spaces": repeated("a\u00a0"),
    "scripts": repeated("a\u05d0\u0e01\u4e2d\u0905"),
    **{f"code {language}": _code(language) for language in _SLOW_CODE},
}
