"""Tests that printed text contains no character that controls the terminal."""

from __future__ import annotations

from unicodedata import category

import pytest
from hypothesis import given, strategies as st

from app.cli.terminal import for_terminal

SHOWN = "\n\t\u200c\u200d"


@pytest.mark.parametrize(
    "text", ["", "Plain.\n\ttext", "été 中文", "👩\u200d👧 and 🇫🇷", "a\u00a0b", "\u3000中"]
)
def test_ordinary_text_is_unchanged(text: str) -> None:
    assert for_terminal(text) == text


@pytest.mark.parametrize(
    "text", ["\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\r", "\b", "\u202e", "\ud800", "\u2066"]
)
def test_control_characters_are_replaced(text: str) -> None:
    assert for_terminal(text)[0] == "\N{REPLACEMENT CHARACTER}"


@given(st.text())
def test_every_character_is_printable_or_harmless(text: str) -> None:
    shown = for_terminal(text)

    assert len(shown) == len(text)
    assert all(
        letter.isprintable() or letter in SHOWN or category(letter) == "Zs" for letter in shown
    )
