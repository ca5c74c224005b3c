"""Tests that formulas in Markdown are found, and money, code and escapes are not formulas."""

from __future__ import annotations

import pytest

from app.viewmodels.blocks import FormulaBlock, FrameKind, TextBlock, TextMark, TextSpan
from app.viewmodels.latex import rewritten
from app.viewmodels.markdown import parse_markdown

INLINE = TextMark.FORMULA
LARGE = TextMark.FORMULA | TextMark.DISPLAY


def spans(text: str) -> tuple[TextSpan, ...]:
    (block,) = parse_markdown(text)
    assert isinstance(block, TextBlock)
    return block.spans


def formulas(text: str) -> list[str]:
    return [
        span.text
        for block in parse_markdown(text)
        if isinstance(block, TextBlock)
        for span in block.spans
        if INLINE in span.marks
    ]


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("$x$", TextSpan("x", INLINE)),
        (r"$\$5 + x_1$", TextSpan(r"\$5 + x_1", INLINE)),
        (r"\(x * y * z\)", TextSpan("x * y * z", INLINE)),
        (r"\( x \)", TextSpan("x", INLINE)),
        ("the $i$", TextSpan("i", INLINE)),
        ("so $$x$$", TextSpan("x", LARGE)),
        (r"so \[x\]", TextSpan("x", LARGE)),
        (
            r"$\begin{cases} a \\ b \end{cases}$",
            TextSpan(r"\begin{cases} a \\ b \end{cases}", INLINE),
        ),
    ],
)
def test_inline_formula_becomes_a_formula_span(text: str, formula: TextSpan) -> None:
    assert spans(text)[-1] == formula


@pytest.mark.parametrize(
    "text",
    [
        "$5",
        "It costs $5 and $10.",
        "between $100-$200",
        "US$5 or CA$6",
        "$5/month or $50/year",
        "a $ b $ c",
        "$HOME and `$PATH`",
        "$HOME:$PATH",
        "$HOME/$this",
        "$$x$",
        r"\$x\$",
        r"\\(x\\)",
        "$$",
        "$$$$",
        "$ $",
        r"\(\)",
        "`$x$`",
        r"`\(x\)` and \(half",
        "```\n$$\nx\n$$\n```",
        "    $$x$$",
    ],
)
def test_money_code_and_escapes_are_not_formulas(text: str) -> None:
    assert formulas(text) == []
    assert not any(isinstance(block, FormulaBlock) for block in parse_markdown(text))


def test_money_and_formulas_in_one_line_are_told_apart() -> None:
    assert formulas("Pay $5 if $n$ is 3, else $10, where $n=1$ or 2") == ["n", "n=1"]


@pytest.mark.parametrize("text", ["the $i$th of $n$s", "the $i$-th, $n$."])
def test_formula_may_have_an_ordinal_or_plural_suffix(text: str) -> None:
    assert formulas(text) == ["i", "n"]


def test_formula_between_chinese_characters_needs_no_spaces() -> None:
    assert formulas("设$x$为整数") == ["x"]


def test_adjacent_formulas_are_not_merged() -> None:
    assert spans(r"\(a\)\(b\)") == (TextSpan("a", INLINE), TextSpan("b", INLINE))


def test_bold_around_a_formula_is_kept() -> None:
    assert spans("**$x$**") == (TextSpan("x", INLINE | TextMark.BOLD),)


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("$$x$$", "x"),
        ("$$\nx = 1\n\\\\ y\n$$", "x = 1\n\\\\ y"),
        ("\\[\n- a\n+ b\n\\]", "- a\n+ b"),
        (r"  \[ x \]  ", "x"),
        ("$$x\n= y$$", "x\n= y"),
        ("\\begin{align*}\na &= b\n\\end{align*}", "\\begin{align*}\na &= b\n\\end{align*}"),
    ],
)
def test_formula_on_its_own_lines_becomes_a_formula_block(text: str, latex: str) -> None:
    (block,) = parse_markdown(text)
    assert isinstance(block, FormulaBlock)
    assert block.latex == latex


def test_formula_block_splits_a_paragraph() -> None:
    kinds = [type(block) for block in parse_markdown("so\n$$\nx\n$$\nholds")]

    assert kinds == [TextBlock, FormulaBlock, TextBlock]


def test_formula_blocks_in_lists_and_quotes_have_frames() -> None:
    text = "1. first\n\n   $$\n   x\n   y\n   $$\n2. second\n\n> \\[\n> z\n> \\]"
    found = [block for block in parse_markdown(text) if isinstance(block, FormulaBlock)]

    assert [block.latex for block in found] == ["x\ny", "z"]
    assert [block.frames[0].kind for block in found] == [FrameKind.NUMBER, FrameKind.QUOTE]


@pytest.mark.parametrize("text", ["$$\nx\n\ny\n$$", "\\[\nx", "- $$\n  x\n\nend"])
def test_formula_without_end_or_with_an_empty_line_is_text(text: str) -> None:
    assert not any(isinstance(block, FormulaBlock) for block in parse_markdown(text))


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"a \\[4pt] b \\ [1.5em] c \\[x]", r"a \\ b \\ c \\[x]"),
        (r"x''^{2} + y'^\alpha", r"x^{\prime\prime 2} + y^{\prime \alpha}"),
        (r"\begin{alignat*}{2} a \end{alignat*}", r"\begin{align*} a \end{align*}"),
        (r"\begin{bmatrix*}[r] 1 \end{bmatrix*}", r"\begin{bmatrix} 1 \end{bmatrix}"),
        (r"\begin{array}[t]{cc} a \end{array}", r"\begin{array}{cc} a \end{array}"),
        (r"\begin{rcases} a \end{rcases}", r"\left.\begin{array}{ll} a \end{array}\right\}"),
        (r"\text{for $x_{1}$ or $y$}", r"\text{for }x_{1}\text{ or }y"),
        (r"\text{from \$5 to \$6}", r"\text{from \$5 to \$6}"),
        (r"\text{\'{e}t\'e \oe \v{c} \"\i}", "\\text{été œ č ï}"),
        (r"\text{a {b} c}", r"\text{a b c}"),
        (r"\overarc{AB} \allowbreak \label{1}", r"\overparen{AB}"),
        (r"\begin{align} a &= b \end{align}", r"\begin{align*} a &= b \end{align*}"),
        (r"\text{if x < 0, R\&D}", r"\text{if x &lt; 0, R&amp;D}"),
        (r"\text{a \textbf{b} \it c}", r"\text{a }\textbf{b}\text{ }\textit{c}"),
        (r"\operatorname*{arg\,max}_x", "\\operatornamewithlimits{arg\u00a0max}_x"),
        (
            r"\cancelto{0}{x^{2}} \abs{\norm{x}}",
            r"{\cancel{x^{2}}}^{0} \left|\left\|x\right\|\right|",
        ),
        (r"\ket{\psi} \Bra{x} \mathds{1}", r"{|\psi\rangle} \left\langle x\right| \mathbb{1}"),
        (r"x \not= y \\ \\", r"x \ne  y"),
        (r"\alpha \begin{cases} \sum \end{cases}", r"\alpha \begin{cases} \sum \end{cases}"),
    ],
)
def test_latex_is_rewritten_for_the_converter(latex: str, expected: str) -> None:
    assert rewritten(latex) == expected
