"""The measure of difference between logits, also for infinities and NaN."""

from __future__ import annotations

import math

import mlx.core as mx
import pytest

from engine.models.compare import relative_difference

INF = math.inf
ROW = [1.0, -1.0, 1.0, -1.0]  # the standard deviation is 1


@pytest.mark.parametrize(
    ("ours", "wanted", "difference"),
    [
        (ROW, ROW, 0.0),
        ([1.5, -1.0, 1.0, -1.0], ROW, 0.5),
        ([*ROW, -INF], [*ROW, -INF], 0.0),
        ([1.0, -1.0, 1.0, -1.25, -INF], [*ROW, -INF], 0.25),
        ([*ROW, 0.0], [*ROW, -INF], INF),
        ([*ROW, INF], [*ROW, -INF], INF),
        ([*ROW, -INF], [*ROW, 0.0], INF),
        ([*ROW, math.nan], [*ROW, 0.0], INF),
        ([*ROW, math.nan], [*ROW, math.nan], 0.0),
        ([2.0, 2.0], [2.0, 2.0], 0.0),
        ([2.0, 3.0], [2.0, 2.0], INF),
    ],
)
@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16])
def test_relative_difference_equals_the_expected_number(
    ours: list[float], wanted: list[float], difference: float, dtype: mx.Dtype
) -> None:
    assert relative_difference(mx.array(ours, dtype), mx.array(wanted, dtype)) == difference
