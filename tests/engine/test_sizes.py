"""Sizes in sentences have one decimal, and none that is 0."""

from __future__ import annotations

import pytest

from engine.sizes import size_of


@pytest.mark.parametrize(
    ("num_bytes", "wanted"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1_500, "1.5 KB"),
        (20_000_000, "20 MB"),
        (16_000_000_000, "16 GB"),
        (9_100_000_000, "9.1 GB"),
    ],
)
def test_size_has_no_decimal_that_is_0(num_bytes: int, wanted: str) -> None:
    assert size_of(num_bytes) == wanted
