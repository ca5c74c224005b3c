"""The numeric difference between two runs of a model. Engine thread only.

Loading needs it (probe.py refuses a model that does not resume as it went on), so it is here and
not in engine.checking, which uses it too.
"""

from __future__ import annotations

import mlx.core as mx

# The largest difference that rounding makes in half precision, in standard deviations. A wrong state
# gives far more.
_HALF_ROUNDING = 3e-2


def rounding_in(array: mx.array, full: float) -> float:
    """Return the relative difference that rounding may make: full, or more in half precision."""
    return _HALF_ROUNDING if array.dtype in (mx.float16, mx.bfloat16) else full


def relative_difference(ours: mx.array, wanted: mx.array) -> float:
    """Return the largest |ours - wanted| over wanted's standard deviation; 0 only if they are equal.

    Some models forbid tokens by logits of minus infinity: values that are not finite must be equal.
    The result is infinity if they are not, or if no value of wanted is finite.
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
    return value if value == value else float("inf")  # NaN: only ours is not finite somewhere
