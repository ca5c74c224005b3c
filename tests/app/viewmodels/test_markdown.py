from __future__ import annotations

import pytest

from app.viewmodels.blocks import (
    LINE_BREAK,
    Align,
    Block,
    CodeBlock,
    Container,
    FrameKind,
    RuleBlock,
    TableBlock,
    TextBlock,
    TextMark,
    TextSpan,
)
from app.viewmodels.markdown import normalized, parse_markdown
from tests.fakes.transcript_samples import GUIDE


def only(text: str) -> Block:
    blocks = parse_markdown(text)
    assert len(blocks) == 1
    return blocks[0]


def spans(text: str) -> tuple[TextSpan, ...]:
    block = only(text)
    assert isinstance(block, TextBlock)
    return block.spans


def test_inline_marks_nest() -> None:
    assert spans("a **b *c* `d`** ~~e~~") == (
        TextSpan("a "),
        TextSpan("b ", TextMark.BOLD),
        TextSpan("c", TextMark.BOLD | TextMark.ITALIC),
        TextSpan(" ", TextMark.BOLD),
        TextSpan("d", TextMark.BOLD | TextMark.CODE),
        TextSpan(" "),
        TextSpan("e", TextMark.STRIKE),
    )


@pytest.mark.parametrize("text", ["**half", "[half](http://x", "`half", "a * b", "~~half"])
def test_unclosed_marks_stay_as_text(text: str) -> None:
    assert spans(text) == (TextSpan(text),)


def test_link_spans_have_their_address() -> None:
    assert spans("[*a*](https://x.org) <https://y.org>") == (
        TextSpan("a", TextMark.ITALIC, "https://x.org"),
        TextSpan(" "),
        TextSpan("https://y.org", TextMark.NONE, "https://y.org"),
    )


def test_image_becomes_a_link_to_its_address() -> None:
    assert spans("![a *b*](https://x.org/i.png)") == (
        TextSpan("a b", TextMark.NONE, "https://x.org/i.png"),
    )
    assert spans("![](https://x.org/i.png)")[0].text == "https://x.org/i.png"


def test_javascript_link_stays_text() -> None:
    assert spans("[a](javascript:alert(1))") == (TextSpan("[a](javascript:alert(1))"),)


def test_raw_html_stays_text() -> None:
    assert spans("a <b>c</b> &amp; d") == (TextSpan("a <b>c</b> & d"),)
    assert spans("<div>\n<script>x</script>\n</div>") == (
        TextSpan(f"<div>{LINE_BREAK}<script>x</script>{LINE_BREAK}</div>"),
    )


def test_each_line_end_in_a_paragraph_is_one_line_break() -> None:
    assert spans("a\nb\\\nc  \nd") == (TextSpan(LINE_BREAK.join("abcd")),)


@pytest.mark.parametrize(
    "text",
    [
        "a \n  b",
        "a\r\nb",
        "- a\n  b",
        "1. a\nb",
        "- [ ] a\n  b",
        "> a\n> b",
        "> - a\nb",
        "a\nb\n---",
        "**a\nb**",
        "*a*\n`b`",
        "[a\nb](https://x.org)",
        "![a\n*b*](https://x.org/i.png)",
    ],
)
def test_line_end_is_a_line_break_in_every_kind_of_text(text: str) -> None:
    block = only(text)
    assert isinstance(block, TextBlock)
    assert block.text == f"a{LINE_BREAK}b"


def test_white_space_collapses_in_text_but_not_in_code() -> None:
    assert spans("a   b\tc&#10;d <i\ne>") == (TextSpan("a b c d <i e>"),)
    assert spans("`a   b`") == (TextSpan("a   b", TextMark.CODE),)


@pytest.mark.parametrize(
    ("text", "level"), [("# a", 1), ("### a ###", 3), ("a\n===", 1), ("a\n---", 2), ("a", 0)]
)
def test_headings_have_their_level(text: str, level: int) -> None:
    block = only(text)
    assert isinstance(block, TextBlock)
    assert (block.level, block.text) == (level, "a")


def test_code_blocks_have_language_text_and_closed_flag() -> None:
    block = only("``` Python title\na\n\n  b\n```")
    assert isinstance(block, CodeBlock)
    assert (block.language, block.text, block.closed) == ("Python", "a\n\n  b", True)
    block = only("```\na")
    assert isinstance(block, CodeBlock)
    assert (block.language, block.text, block.closed) == ("", "a", False)
    block = only("    a\n      b")
    assert isinstance(block, CodeBlock)
    assert (block.text, block.closed) == ("a\n  b", True)


def test_escapes_in_a_language_name_are_resolved() -> None:
    block = only("``` c\\+\\+&ouml;\na\n```")
    assert isinstance(block, CodeBlock)
    assert block.language == "c++ö"


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ("```", False),
        ("```\n```", True),
        ("```\n\n```", True),
        ("> ```\n> a\n> ```", True),
        ("> ```\n> a\nb", False),
    ],
)
def test_fence_is_closed_only_by_its_own_end_line(text: str, closed: bool) -> None:
    block = parse_markdown(text)[0]
    assert isinstance(block, CodeBlock)
    assert block.closed is closed


def bullet(*, opens: bool) -> Container:
    return Container(FrameKind.BULLET, opens)


def test_blocks_have_the_frames_of_their_containers() -> None:
    first, second, third = parse_markdown("- a\n\n  b\n- > c")
    quote = Container(FrameKind.QUOTE, opens=True)
    assert (first.frames, first.joined) == ((bullet(opens=True),), 0)
    assert (second.frames, second.joined) == ((bullet(opens=False),), 1)
    assert (third.frames, third.joined) == ((bullet(opens=True), quote), 0)


def test_ordered_list_counts_from_its_first_number() -> None:
    blocks = parse_markdown("7. a\n7. b\n7. c")
    assert [block.frames[0].number for block in blocks] == [7, 8, 9]


def test_task_items_have_task_frames() -> None:
    done, todo, plain = parse_markdown("- [x] a\n- [ ] b\n- [y] c")
    assert done.frames == (Container(FrameKind.TASK, opens=True, checked=True),)
    assert todo.frames == (Container(FrameKind.TASK, opens=True, checked=False),)
    assert plain.frames == (bullet(opens=True),)
    assert isinstance(done, TextBlock)
    assert done.text == "a"


def test_empty_list_item_keeps_its_marker() -> None:
    blocks = parse_markdown("- a\n-\n- c")
    assert [block.frames[0].opens for block in blocks] == [True, True, True]


@pytest.mark.parametrize("text", [">", "> [a]: /u"])
def test_empty_quote_becomes_a_block(text: str) -> None:
    assert only(text).frames == (Container(FrameKind.QUOTE, opens=True),)


def test_loose_and_tight_lists_give_equal_blocks() -> None:
    def shape(text: str) -> list[tuple[object, ...]]:
        return [(type(block), block.frames, block.joined) for block in parse_markdown(text)]

    assert shape("- a\n- b") == shape("- a\n\n- b")


def test_table_has_aligns_and_rows_of_equal_length() -> None:
    table = only("| a | `b` |\n|:-:|--:|\n| 1 |\n| 2 | 3 | 4 |")
    assert isinstance(table, TableBlock)
    assert table.aligns == (Align.CENTER, Align.RIGHT)
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["a", "b"],
        ["1", ""],
        ["2", "3"],
    ]


def test_break_tag_in_a_table_cell_is_a_line_break() -> None:
    table = only("| a | b |\n|---|---|\n| 1 <br> 2<BR/>3<br />**4** | <b>5</b> `<br>` |")
    assert isinstance(table, TableBlock)
    assert [cell.text for cell in table.rows[1]] == [
        f"1 {LINE_BREAK}2{LINE_BREAK}3{LINE_BREAK}4",
        "<b>5</b> <br>",
    ]
    assert spans("1<br>2") == (TextSpan("1<br>2"),), "other text has line breaks of its own"


def test_thematic_break_becomes_a_rule_block() -> None:
    assert isinstance(only("* * *"), RuleBlock)


def test_source_ranges_cover_the_lines_of_the_blocks() -> None:
    text = normalized(GUIDE)
    sources = [text[block.source.start : block.source.end] for block in parse_markdown(text)]
    assert sources[0] == "# How it works"
    assert "1. First, with two paragraphs" in sources
    assert "     1. deeper" in sources
    assert any(source.startswith("```python\n") and source.endswith("```") for source in sources)
    assert any(source.startswith("| Layer") and source.endswith("| 0 |") for source in sources)


def test_normalized_replaces_cr_and_nul() -> None:
    assert normalized("a\r\nb\rc\0") == "a\nb\nc\ufffd"
    assert parse_markdown("a\r\n\r\nb") == parse_markdown("a\n\nb")
