from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from app.conversation.text import (
    TITLE_LEN,
    clean_text,
    file_label,
    message_text,
    one_line,
    title_from,
)
from app.exchange.exporting import file_name


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("What is the capital of France?", "What is the capital of France?"),
        ("\n\n  Two   spaces\nand a second line", "Two spaces"),
        ("## Heading with `code`", "Heading with code"),
        ("> - **Bold** and *soft* text", "Bold and soft text"),
        ("1. first\n2. second", "first"),
        ("See [the docs](https://example.org/a_b) now", "See the docs now"),
        ("```python\nprint('hi')\n```", "print('hi')"),
        ("2 * 3 * 4 and my_var and **kwargs", "2 * 3 * 4 and my_var and **kwargs"),
        ("-5 degrees", "-5 degrees"),
        ("###", "###"),
        ("```", "```"),
        ("这是一个问题", "这是一个问题"),
    ],
)
def test_title_is_the_first_line_without_markdown(text: str, title: str) -> None:
    assert title_from(text) == title


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("invoice\u202efdp.exe", "invoicefdp.exe"),
        ("a\x1b]0;title\x07.txt", "a]0;title.txt"),
        ("a\u2066b\u2069 \u200ec", "ab c"),
        ("\ufeff\xad\u200b.txt", ".txt"),
        ("\u202e", "\N{REPLACEMENT CHARACTER}"),
        ("\u0645\u06cc\u200c\u062e 👩\u200d💻", "\u0645\u06cc\u200c\u062e 👩\u200d💻"),
    ],
)
def test_names_lose_invisible_characters_and_keep_joiners(name: str, shown: str) -> None:
    assert one_line(name, 100) == shown
    assert file_label(Path("/folder", name)) == shown
    assert title_from(name) == shown


def test_suggested_name_of_a_file_has_no_invisible_characters() -> None:
    assert file_name("a: \u202eb\x1b") == "a b"


def test_long_title_ends_at_a_word() -> None:
    asked = "Please explain, in simple words, how a hybrid model keeps its state"
    title = title_from(f"{asked}, and what becomes of it when a message in the middle is edited")

    assert title == f"{asked}, and what becomes of it when a message in the…"
    assert len(title_from("x" * 200)) == TITLE_LEN


@given(st.text())
def test_title_is_one_short_line_and_empty_only_for_blank_text(text: str) -> None:
    title = title_from(text)

    assert len(title) <= TITLE_LEN
    assert len(title.splitlines()) <= 1
    assert bool(title) == bool(text.strip())


def test_title_of_two_megabyte_text_is_made_in_time() -> None:
    assert title_from("*" * 2_000_000).startswith("*")


def test_clean_text_repairs_halves_of_surrogate_pairs() -> None:
    assert clean_text("a\ud83d\ude00b") == "a😀b"
    assert clean_text("a\ud83db") == "a\ufffdb"


@given(st.text())
def test_clean_text_keeps_text_without_surrogates(text: str) -> None:
    assert clean_text(text) == text


def test_message_text_drops_leading_blank_lines() -> None:
    assert message_text("\n  \n\tcode\n\nmore\n") == "\tcode\n\nmore\n"
    assert message_text("  one") == "  one"
