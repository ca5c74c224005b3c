from __future__ import annotations

import pytest

from app.viewmodels.find import Counts, Occurrence, find_pattern

TEXTS = ["aa", "b", "", "a"]
FOUND = [Occurrence(0, 0), Occurrence(0, 1), Occurrence(3, 0)]


def counted(wanted: str, *texts: str) -> Counts:
    counts = Counts(find_pattern(wanted))
    counts.count(texts)
    return counts


@pytest.mark.parametrize(
    ("wanted", "text", "count"),
    [
        ("fox", "Fox, fox and FOXES", 3),
        ("a  b", "a b, a\nb, a\u00a0b, ab", 3),
        ("(x)", "f(x) and x", 1),
        ("STRASSE", "straße", 0),
        ("ÉTÉ", "l'été", 1),
    ],
)
def test_any_case_and_any_white_space(wanted: str, text: str, count: int) -> None:
    assert counted(wanted, text).total == count


@pytest.mark.parametrize("wanted", ["", " ", "\n\t"])
def test_no_words_look_for_nothing(wanted: str) -> None:
    assert find_pattern(wanted) is None
    assert counted(wanted, "a b").total == 0


def test_occurrences_are_counted_in_each_message() -> None:
    counts = counted("a", *TEXTS)

    assert [counts.occurrence(number) for number in range(counts.total)] == FOUND


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
def test_the_next_one(current: Occurrence | None, step: int, near: int, index: int) -> None:
    assert counted("a", *TEXTS).neighbour(current, step=step, near=near) == index
