from __future__ import annotations

import pytest

from app.viewmodels.direction import has_right_to_left, is_right_to_left, isolated


@pytest.mark.parametrize(
    ("text", "has_some", "is_so"),
    [
        ("", False, False),
        ("Plain", False, False),
        ("Größe 中文 😀", False, False),
        ("שלום world", True, True),
        ("مرحبا", True, True),
        ("42: «שלום»", True, True),  # digits and quotes are neutral
        ("שָׁלוֹם", True, True),
        ("English with שלום inside", True, False),
        ("— 😀 𞤀", True, True),  # Adlam is outside the Basic Multilingual Plane
    ],
)
def test_direction_follows_the_first_letter(text: str, has_some: bool, is_so: bool) -> None:
    assert has_right_to_left(text) is has_some
    assert is_right_to_left(text) is is_so


def test_only_right_to_left_text_is_isolated() -> None:
    assert isolated("Plain?") == "Plain?"
    question = "שלום?"
    assert isolated(question) == f"\u2067{question}\u2069"
