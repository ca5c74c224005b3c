"""Measure the numeric difference between the results of two runs of a model.

engine/checking and probe.py use this module. probe.py compares results when a model is loaded, and
refuses the model if restored caches change the results. Use on the engine thread.
"""

from __future__ import annotations

import mlx.core as mx

# Largest difference in half precision that counts as rounding, in standard deviations. A wrong
# cache state causes far larger differences.
_HALF_ROUNDING = 3e-2


def rounding_in(array: mx.array, full: float) -> float:
    """Return the largest relative difference that counts as rounding.

    Args:
        array: an array of the results to compare. Only its number type matters.
        full: the difference to return for float32. For half precision, the function returns a
            larger constant.
    """
    return _HALF_ROUNDING if array.dtype in (mx.float16, mx.bfloat16) else full


def relative_difference(ours: mx.array, wanted: mx.array) -> float:
    """Return the largest |ours - wanted|, divided by the standard deviation of `wanted`.

    The result is 0 only if both arrays are equal. The result is infinity if `wanted` has no finite
    value, or if the arrays have different non-finite values. Equal non-finite values are allowed,
    because some models set the logits of forbidden tokens to minus infinity.
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
