from __future__ import annotations

import pytest

from app.viewmodels import helper_program
from app.viewmodels.highlight import MAX_PARTIAL


def test_growing_block_that_takes_too_long_is_not_lexed_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert helper_program.grow("python", 1, 0, "return 1\n") is not None
    monkeypatch.setattr(helper_program, "_BLOCK_S", 0.0)
    monkeypatch.setattr(helper_program, "_CHARACTER_S", 0.0)

    assert helper_program.grow("python", 1, 9, "return 2\n") is None
    assert helper_program.grow("python", 1, 0, "return 1\nreturn 2\n") is None, "it began anew"
    assert helper_program.grow("python", 2, 0, "return 1\n") is not None, "another block"


def test_growing_block_without_its_earlier_code_asks_for_all_of_it() -> None:
    assert helper_program.grow("python", 3, 9, "return 2\n") is None
    assert helper_program.grow("python", 3, 0, "return 1\nreturn 2\n") is not None


def test_long_incomplete_line_keeps_the_colours_of_its_start() -> None:
    start = f"return {'1 + ' * (MAX_PARTIAL // 8)}"
    colors = helper_program.grow("python", 4, 0, start)
    assert colors is not None
    assert colors["partial"]

    longer = helper_program.grow("python", 4, len(start), "1 + " * MAX_PARTIAL)
    assert longer is not None
    assert longer["partial"] == colors["partial"]
    complete = helper_program.grow("python", 4, len(start) + 4 * MAX_PARTIAL, "1\n")
    assert complete is not None
    assert complete["partial"] == []
    assert complete["lines"]
