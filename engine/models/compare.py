"""Measure the numeric difference between the results of two runs of a model.

engine/checking uses this module. So does probe.py when a model is loaded: it refuses a model that
gives other results after its caches were restored. Use on the engine thread.
"""

from __future__ import annotations

import mlx.core as mx

# Largest difference in half precision that counts as rounding, in standard deviations. A wrong
# cache state causes far larger differences.
_HALF_ROUNDING = 3e-2


def rounding_in(array: mx.array, full: float) -> float:
    """Return the largest relative difference that counts as rounding for an array's number type.

    Args:
        array: an array of this number type.
        full: the result for float32. The result for half precision is larger.
    """
    return _HALF_ROUNDING if array.dtype in (mx.float16, mx.bfloat16) else full


def relative_difference(ours: mx.array, wanted: mx.array) -> float:
    """Return the largest |ours - wanted|, divided by the standard deviation of `wanted`.

    The result is 0 only if both arrays are equal. Some models set the logits of forbidden tokens to
    minus infinity. Non-finite values must therefore be the same in both arrays: if they differ, or
    if `wanted` has no finite value, the result is infinity.
    """
    is_number = mx.isfinite(wanted)
    if not mx.any(is_number).item():
        return float("inf")
    ours, wanted = ours.astype(mx.float32), wanted.astype(mx.float32)
    others = (mx.where(is_number, 0.0, array) for array in (ours, wanted))
    if not mx.array_equal(*others, equal_nan=True).item():
        return float("inf")
    count = mx.sum(is_number)
    mean = mx.sum(mx.where(is_number, wanted, 0.0)) / count
    variance = mx.sum(mx.where(is_number, mx.square(wanted - mean), 0.0)) / count
    largest = mx.max(mx.where(is_number, mx.abs(ours - wanted), 0.0))
    value = mx.where(largest == 0.0, 0.0, largest / mx.sqrt(variance)).item()
    assert isinstance(value, float)
    # The value is NaN if only `ours` has a non-finite value.
    return value if value == value else float("inf")
