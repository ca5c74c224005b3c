"""undo_on_error calls the undo function if the block raises, and the exception passes on."""

from __future__ import annotations

import pytest

from engine.cleanup import undo_on_error


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_undo_on_error_with_an_error_undoes_once_and_reraises(error: type[BaseException]) -> None:
    undone: list[str] = []
    with pytest.raises(error), undo_on_error(lambda: undone.append("undone")):
        raise error

    assert undone == ["undone"]


def test_undo_on_error_without_an_error_undoes_nothing() -> None:
    undone: list[str] = []
    with undo_on_error(lambda: undone.append("undone")):
        pass

    assert undone == []
