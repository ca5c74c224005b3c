from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, strategies as st

from app.viewmodels.blocks import (
    LINE_BREAK,
    Block,
    CodeBlock,
    FormulaBlock,
    SourceRange,
    TableBlock,
    TextBlock,
    TextMark,
)
from app.viewmodels.markdown import make_parser, normalized, parse_markdown
from app.viewmodels.markdown_stream import MarkdownStream
from tests.fakes.tables import rest_in_soak
from tests.fakes.transcript_samples import ANSWERS, GUIDE, PITFALLS

PARSER = make_parser()
LINES = [
    *PITFALLS.split("\n"),
    *GUIDE.split("\n"),
    "",
    "",
    "[a]: /u",
    "[a]",
    "'title'",
    "\t- x",
    "-",
    "2.",
    "$$",
    "x = 1 $$",
    r"\[",
    r"\]",
    r"  $$x$$",
    r"> \[ y",
    r"\begin{align}",
    r"\end{align}",
    "$a$ and $5",
]


def streamed(text: str, sizes: list[int]) -> MarkdownStream:
    """Append the text in pieces of the lengths `sizes`. Assert that final blocks never change."""
    stream = MarkdownStream(PARSER)
    start = turn = 0
    final: list[Block] = []
    while start < len(text):
        end = start + sizes[turn % len(sizes)]
        stream.append_text(text[start:end])
        assert stream.frozen[: len(final)] == final
        final = list(stream.frozen)
        start, turn = end, turn + 1
    return stream


def formulas_of(blocks: Iterable[Block]) -> list[str]:
    """Return the LaTeX of all formulas in paragraphs and tables."""
    cells = [
        spans
        for block in blocks
        for spans in (
            [block.spans]
            if isinstance(block, TextBlock)
            else [cell.spans for row in block.rows for cell in row]
            if isinstance(block, TableBlock)
            else []
        )
    ]
    return [span.text for spans in cells for span in spans if TextMark.FORMULA in span.marks]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "step"),
    rest_in_soak(
        [
            ("guide", 1),
            ("pitfalls", 1),
            ("guide", 7),
            ("pitfalls", 3),
            ("open fence", 1),
            ("crlf", 11),
        ],
        *[("guide", 7), ("pitfalls", 3), ("open fence", 1), ("crlf", 11)],
    ),
)
def test_every_prefix_of_a_stream_equals_parse_markdown(name: str, step: int) -> None:
    text = ANSWERS[name]
    for end in range(0, len(text) + 1, step):
        stream = streamed(text[:end], [17])
        stream.finish()
        assert stream.blocks == parse_markdown(text[:end]), f"after {end} characters"


@pytest.mark.parametrize("name", ANSWERS)
def test_stream_by_characters_equals_parse_markdown(name: str) -> None:
    stream = MarkdownStream(PARSER)
    for character in ANSWERS[name]:
        stream.append_text(character)
        assert stream.blocks is not None  # parse the text after every character, as the view does
    stream.finish()
    assert stream.blocks == parse_markdown(ANSWERS[name])
    assert stream.text == normalized(ANSWERS[name])


@given(
    st.lists(st.sampled_from(LINES), max_size=14),
    st.lists(st.integers(1, 9) | st.integers(10, 200), min_size=1, max_size=4),
    st.sampled_from(["\n", "\r\n"]),
)
def test_stream_in_random_pieces_equals_parse_markdown(
    lines: list[str], sizes: list[int], end: str
) -> None:
    text = end.join(lines)
    stream = streamed(text, sizes)
    stream.finish()
    assert stream.blocks == parse_markdown(text)


def test_long_text_freezes_all_blocks_but_the_last() -> None:
    stream = streamed(GUIDE * 20, [200])
    assert len(stream.frozen) > 300
    assert len(stream.tail) < 5


def test_items_of_a_long_list_are_frozen() -> None:
    stream = streamed("".join(f"{number}. item\n" for number in range(1, 200)), [10])
    assert len(stream.frozen) == 198
    assert stream.tail[0].frames[0].number == 199


def test_open_fence_is_a_code_block_from_its_first_line() -> None:
    stream = MarkdownStream(PARSER)
    stream.append_text("Text:\n```py")
    assert isinstance(stream.tail[-1], CodeBlock)
    stream.append_text("thon\nprint(1)\n``")
    block = stream.tail[-1]
    assert isinstance(block, CodeBlock)
    assert (block.language, block.text, block.closed) == ("python", "print(1)", False)
    stream.append_text("`\nafter")
    block = stream.frozen[-1]
    assert isinstance(block, CodeBlock)
    assert block.closed


@pytest.mark.parametrize("marker", ["-", "--", "***", "#", "1.", "```", "|", "> ", "=="])
def test_last_line_of_markup_only_is_not_shown(marker: str) -> None:
    stream = MarkdownStream(PARSER)
    stream.append_text(f"Some text\n{marker}")
    (block,) = stream.blocks
    assert isinstance(block, TextBlock)
    assert (block.level, block.text) == (0, "Some text")


@pytest.mark.parametrize("opening", ["$$", r"\[", r"\begin{align}"])
def test_open_formula_is_shown_as_source_and_not_frozen(opening: str) -> None:
    stream = streamed(f"{opening}\n- a\n- b\n", [3])

    (block,) = stream.blocks
    assert isinstance(block, TextBlock)
    assert block.text == LINE_BREAK.join([opening, "- a", "- b"])
    assert not stream.frozen


@pytest.mark.parametrize("text", ["para\n\\[\nx\n\nend", "so\n$$\nx", "- a\n$$\nx\n\nend"])
def test_formula_without_end_becomes_text_of_the_block_above(text: str) -> None:
    stream = streamed(text, [1])
    stream.finish()

    assert stream.blocks == parse_markdown(text)


def test_formula_in_growing_text_stays_a_formula() -> None:
    text = "So $x^2$. It costs $5/$6 or $7-$8.\n\n- The $n$th and $k$\n\n| $t$ | b |\n|---|---|\n| $u$ | c |\n\n\\(a\\)"
    stream = MarkdownStream(PARSER)
    found: list[str] = []
    for character in text:
        stream.append_text(character)
        formulas = formulas_of(stream.blocks)
        assert formulas[: len(found)] == found
        found = formulas
    stream.finish()
    assert formulas_of(stream.blocks) == ["x^2", "n", "k", "t", "u", "a"]


def test_formula_block_appears_when_its_line_is_complete() -> None:
    stream = MarkdownStream(PARSER)
    shown: list[bool] = []
    for piece in ("$$x$$", " is a part", " of a line.\n\n$$y$$", "\n"):
        stream.append_text(piece)
        shown.append(any(isinstance(block, FormulaBlock) for block in stream.blocks))
    assert shown == [False, False, False, True]
    stream.append_text("$$z$$")
    stream.finish()
    assert isinstance(stream.blocks[-1], FormulaBlock)


def test_closed_formula_is_frozen() -> None:
    stream = streamed("$$\n- a\n$$\n", [1])

    assert stream.frozen == [FormulaBlock(source=SourceRange(0, 9), latex="- a")]


def test_crlf_split_between_pieces_is_one_line_end() -> None:
    stream = MarkdownStream(PARSER)
    for piece in ("a\r", "\nb\r", "c\r"):
        stream.append_text(piece)
    stream.finish()
    assert stream.text == "a\nb\nc\n"


def test_fence_is_closed_by_a_line_that_ends_with_cr() -> None:
    stream = streamed("```\r\na\r\n```\r", [1])
    stream.finish()
    assert stream.blocks == parse_markdown("```\na\n```\n")


def test_second_list_does_not_continue_the_numbers_of_the_first() -> None:
    text = "1. a\n2. b\n\ntext\n\n1. c\n\nmore\n"
    stream = streamed(text, [10, 100])
    stream.finish()
    assert stream.blocks == parse_markdown(text)


def test_line_of_many_digits_is_decided_in_linear_time() -> None:
    # A pattern that can divide the digits in several ways takes years for these.
    text = "Text\n\n" + "1" * 1000 + "x"

    assert streamed(text, [len(text)]).blocks == parse_markdown(text)


def test_line_of_many_backticks_is_read_in_linear_time() -> None:
    # A pattern that gives back backticks reads the rest of the line again for each of them.
    text = "`" * 1_000_000

    stream = streamed(text, [len(text)])
    stream.finish()

    assert stream.blocks == parse_markdown(text)
