from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from app.viewmodels.find import ROW_END, Counts, Occurrence, SearchText, case_folded, compile_query

TEXTS = ["aa", "b", "", "a"]
FOUND = [Occurrence(0, 0), Occurrence(0, 1), Occurrence(3, 0)]


def counted(looked_for: str, *texts: str, is_read: bool = True) -> Counts:
    counts = Counts(compile_query(looked_for))
    counts.count([SearchText(case_folded(text), is_read) for text in texts])
    return counts


@pytest.mark.parametrize(
    ("looked_for", "text", "count"),
    [
        ("fox", "Fox, fox and FOXES", 3),
        ("a  b", "a b, a\nb, a\u00a0b, ab", 3),
        ("(x)", "f(x) and x", 1),
        ("STRASSE", "straße", 0),
        ("ÉTÉ", "l'été", 1),
        ("İSTANBUL", "in İstanbul", 1),
        ("ΟΔΟΣ", "οδοσι, ΟΔΟΣ, οδος", 3),
        ("aa", "aaaa", 2),
        ("a b", f"a{ROW_END}b", 0),
    ],
)
def test_query_ignores_case_and_kind_of_white_space(looked_for: str, text: str, count: int) -> None:
    assert counted(looked_for, text).total == count
    assert counted(looked_for, text, text).total == 2 * count


@given(st.text())
def test_folded_text_keeps_its_length(text: str) -> None:
    assert len(case_folded(text)) == len(text)
    assert case_folded(case_folded(text)) == case_folded(text)


@pytest.mark.parametrize(
    "text",
    ["the **quick** fox", "*the* quick", "> the\n> quick", "~~the~~ `quick`", "the [quick](x)"],
)
def test_query_in_markdown_skips_marks_between_words(text: str) -> None:
    assert counted("the quick", text, is_read=False).total == 1


@pytest.mark.parametrize("looked_for", ["", " ", "\n\t"])
def test_query_without_words_matches_nothing(looked_for: str) -> None:
    assert compile_query(looked_for) is None
    assert counted(looked_for, "a b").total == 0


def test_occurrences_are_numbered_through_all_messages() -> None:
    counts = counted("a", *TEXTS)

    assert [counts.occurrence(number) for number in range(counts.total)] == FOUND
    assert [counts.number(one) for one in FOUND] == [0, 1, 2]
    assert [counts.within(message) for message in range(len(TEXTS))] == [2, 0, 0, 1]
    assert counts.number(Occurrence(1, 0)) is None


@pytest.mark.parametrize(
    ("current", "step", "near", "index"),
    [
        (None, 0, 0, 0),
        (None, 0, 1, 2),
        (None, 0, 4, 0),
        (None, 1, 1, 2),
        (FOUND[0], 1, 9, 1),
        (FOUND[2], 1, 9, 0),
        (FOUND[0], -1, 9, 2),
        (Occurrence(0, 7), 1, 1, 2),
    ],
)
def test_neighbour_wraps_around_and_starts_near_a_message(
    current: Occurrence | None, step: int, near: int, index: int
) -> None:
    assert counted("a", *TEXTS).neighbour(current, step=step, near=near) == index


def test_query_of_marks_takes_linear_time() -> None:
    # A pattern in which a mark can be a word or a part of a gap tries all combinations.
    assert counted("- - - - x", "- " * 20_000, is_read=False).total == 0
    assert counted("- - x", "- - x", is_read=False).total == 1
