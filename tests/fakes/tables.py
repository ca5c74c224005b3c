"""Tables of test cases: a few rows for each run of the tests, and all rows for long runs.

`make test` runs the rows that a test names. `make soak` runs the others (marker `soak`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import pytest


def rest_in_soak(rows: Iterable[Any], *here: Any) -> list[Any]:
    """Return all rows of a table. Mark those that are not in `here` as soak.

    Args:
        rows: values for pytest.mark.parametrize; tuples if there are several parameters.
        here: the rows that `make test` runs. Each must be in the table.
    """
    table = list(rows)
    assert all(row in table for row in here), "a row is not in the table"
    return [row if row in here else _soak(row) for row in table]


def _soak(row: Any) -> Any:
    values = cast("tuple[Any, ...]", row) if isinstance(row, tuple) else (row,)
    return pytest.param(*values, marks=pytest.mark.soak)
