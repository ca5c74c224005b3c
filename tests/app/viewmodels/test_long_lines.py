from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from app.viewmodels.long_lines import JOINT, LONG_LINE, PIECE, break_long_lines, rejoin_lines


@pytest.mark.parametrize("text", ["", "short\nlines\n", "x" * LONG_LINE])
def test_text_without_long_lines_is_unchanged(text: str) -> None:
    assert break_long_lines(text) == text


def test_long_line_is_broken_into_pieces() -> None:
    broken = break_long_lines("before\n" + "x" * (LONG_LINE + 1) + "\nafter")
    assert max(len(line) for line in broken.split("\n")) == PIECE + len(JOINT)
    assert broken.startswith("before\n")
    assert broken.endswith("\nafter")


@given(st.lists(st.sampled_from(["\n", "word ", "你好", "x" * (LONG_LINE + 1), "\n\n"])))
def test_rejoin_lines_restores_the_original_text(parts: list[str]) -> None:
    text = "".join(parts)
    assert rejoin_lines(break_long_lines(text)) == text


def test_rejoin_lines_removes_a_joint_without_a_line_break() -> None:
    broken = break_long_lines("x" * (LONG_LINE + 1))
    edited = broken.replace(f"{JOINT}\n", JOINT, 1)
    assert rejoin_lines(edited) == "x" * (LONG_LINE + 1)
