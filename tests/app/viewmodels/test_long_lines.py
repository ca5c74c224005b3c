from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from app.viewmodels.long_lines import JOINT, LONG_LINE, PIECE, break_long_lines, rejoin_lines


@pytest.mark.parametrize("text", ["", "short\nlines\n", "x" * LONG_LINE])
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert break_long_lines(text) == text


def test_a_long_line_becomes_short_ones() -> None:
    broken = break_long_lines("before\n" + "x" * (LONG_LINE + 1) + "\nafter")
    assert max(len(line) for line in broken.split("\n")) == PIECE + len(JOINT)
    assert broken.startswith("before\n")
    assert broken.endswith("\nafter")


@given(st.lists(st.sampled_from(["\n", "word ", "你好", "x" * (LONG_LINE + 1), "\n\n"])))
def test_what_goes_in_comes_out(parts: list[str]) -> None:
    text = "".join(parts)
    assert rejoin_lines(break_long_lines(text)) == text


def test_a_break_that_was_deleted_leaves_no_joint() -> None:
    broken = break_long_lines("x" * (LONG_LINE + 1))
    edited = broken.replace(f"{JOINT}\n", JOINT, 1)
    assert rejoin_lines(edited) == "x" * (LONG_LINE + 1)
