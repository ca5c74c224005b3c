"""Tests that printed text contains no character that controls the terminal."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from app.cli.terminal import for_terminal

SHOWN = "\n\t\u200c\u200d\u00a0"


@pytest.mark.parametrize(
    "text", ["", "Plain.\n\ttext", "été 中文", "👩\u200d👧 and 🇫🇷", "a\u00a0b"]
)
def test_ordinary_text_is_unchanged(text: str) -> None:
    assert for_terminal(text) == text


@pytest.mark.parametrize(
    "text", ["\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\r", "\b", "\u202e", "\ud800", "\u2066"]
)
def test_control_characters_are_replaced(text: str) -> None:
    assert for_terminal(text)[0] == "\N{REPLACEMENT CHARACTER}"


@given(st.text())
def test_every_character_is_printable_or_one_of_five(text: str) -> None:
    shown = for_terminal(text)

    assert len(shown) == len(text)
    assert all(letter.isprintable() or letter in SHOWN for letter in shown)
