from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from app.viewmodels.line_breaks import TAB, hanging, line_breaks


def pieces(line: str, columns: int) -> list[str]:
    starts = [*line_breaks(line, columns), len(line)]
    return [line[start:end] for start, end in pairwise(starts)]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("", [""]),
        ("short", ["short"]),
        ("exactly 10", ["exactly 10"]),
        ("two words, or more", ["two words,", " or more"]),
        ("return a_long_name", ["return ", "a_long_n", "ame"]),
        ("        indented", ["        in", "dente", "d"]),
        ("[1,22,333,4444]", ["[1,22,333,", "4444]"]),
        ("\t\tx = 1", ["\t\tx ", "= 1"]),
    ],
)
def test_lines_break_between_words(line: str, wanted: list[str]) -> None:
    assert pieces(line, 10) == wanted


@given(st.text(alphabet="ab ,\t", max_size=60), st.integers(1, 12))
def test_pieces_fit_into_the_columns(line: str, columns: int) -> None:
    made = pieces(line, columns)

    assert "".join(made) == line
    assert all(made) or not line
    room = columns - hanging(line, columns)
    assert all(
        len(piece) == 1 or len(piece.expandtabs(TAB)) <= (room if number else columns)
        for number, piece in enumerate(made)
    )


@pytest.mark.parametrize(
    ("line", "wanted"),
    [("", 2), ("x = 1", 2), ("    x", 6), ("\t  x", 8), ("\t" * 9 + "x", 20)],
)
def test_continued_pieces_are_indented_more_than_the_line(line: str, wanted: int) -> None:
    assert hanging(line, 40) == wanted
