"""The common prefix of two sequences, such as token ids or strings. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence


def common_prefix_len(a: Sequence[object], b: Sequence[object], b_start: int = 0) -> int:
    """Return the length of the common prefix of `a` and `b[b_start:]`.

    Compare slices of up to 1,024 items with `==`, which is far faster than a Python loop over
    thousands of token ids.
    """
    limit = min(len(a), len(b) - b_start)
    position = 0
    width = 1024
    while position < limit:
        width = min(width, limit - position)
        end = position + width
        if _equal(a[position:end], b[b_start + position : b_start + end]):
            position = end
        elif width == 1:
            break
        else:
            width //= 2
    return position


def _equal(a: Sequence[object], b: Sequence[object]) -> bool:
    """Return whether two slices have equal items, even if one is a list and the other a tuple."""
    return a == b if type(a) is type(b) else list(a) == list(b)
