"""Measure the numeric difference between the results of two runs of a model.

Used by engine/checking, and while a model loads: probe.py refuses a model that gives other results
after its caches were restored. Use on the engine thread.
"""

from __future__ import annotations

import mlx.core as mx

# Limit for differences due to rounding in half precision, in standard deviations. A wrong cache
# state causes far larger differences.
_HALF_ROUNDING = 3e-2


def rounding_in(array: mx.array, full: float) -> float:
    """Return the relative difference that rounding may cause in an array of this type.

    Args:
        array: an array of the type in question.
        full: the result for float32; the result for half precision is larger.
    """
    return _HALF_ROUNDING if array.dtype in (mx.float16, mx.bfloat16) else full


def relative_difference(ours: mx.array, wanted: mx.array) -> float:
    """Return the largest |ours - wanted|, divided by the standard deviation of `wanted`.

    The result is 0 only if both arrays are equal. Some models forbid tokens by logits of minus
    infinity, so values that are not finite must be equal in both arrays. The result is infinity if
    those values differ, or if `wanted` has no finite value.
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
    return value if value == value else float("inf")  # NaN if only `ours` has a non-finite value
