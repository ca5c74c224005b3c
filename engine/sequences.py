"""Sequences compared: token ids, text, anything in order. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def common_prefix_len(a: Sequence[object], b: Sequence[object], b_start: int = 0) -> int:
    """How many items of a agree with b[b_start:].

    Compared in slices first: the interpreter's own loop is far faster than ours on long paths.
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
    """A list and a tuple of the same items are equal here."""
    return a == b if type(a) is type(b) else list(a) == list(b)
