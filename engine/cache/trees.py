"""Functions on trees: nested lists, tuples and dicts of arrays and plain values.

mlx-lm's caches keep their state in such trees. `mlx.utils` has similar functions, but without type
annotations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

import mlx.core as mx

# mx.contiguous does not copy a slice if the buffer is at most 16 KiB larger than the slice. For
# slices of at least _LARGE_BYTES, the 16 KiB kept in memory are negligible. Smaller slices are
# always copied.
_LARGE_BYTES = 1 << 20


def arrays_in(tree: object) -> Iterator[mx.array]:
    """Yield all arrays of a tree, in order."""
    if isinstance(tree, mx.array):
        yield tree
    elif isinstance(tree, (list, tuple)):
        for item in cast("list[object]", tree):
            yield from arrays_in(item)
    elif isinstance(tree, dict):
        for item in cast("dict[object, object]", tree).values():
            yield from arrays_in(item)


def map_arrays(function: Callable[[mx.array], mx.array], tree: object) -> object:
    """Return a copy of a tree in which each array is replaced by function(array)."""
    if isinstance(tree, mx.array):
        return function(tree)
    if isinstance(tree, list):
        return [map_arrays(function, item) for item in cast("list[object]", tree)]
    if isinstance(tree, tuple):
        return tuple(map_arrays(function, item) for item in cast("tuple[object, ...]", tree))
    if isinstance(tree, dict):
        items = cast("dict[object, object]", tree).items()
        return {key: map_arrays(function, item) for key, item in items}
    return tree


def tree_bytes(tree: object) -> int:
    return sum(array.nbytes for array in arrays_in(tree))


def owned(x: mx.array) -> mx.array:
    """Return a lazy copy of x, or x itself if x is large and not a slice.

    If x is a slice of a larger array, the result does not keep that array in memory once it is
    evaluated.
    """
    return mx.contiguous(x) if x.nbytes >= _LARGE_BYTES else mx.array(x)


def evaluate_soon(*trees: object) -> None:
    """Start to compute every lazy array of the trees, without waiting for the results."""
    mx.async_eval(list(arrays_in(trees)))  # pyright: ignore[reportUnknownMemberType] — untyped


def evaluate(*trees: object) -> None:
    """Compute every lazy array of the trees in one call, and wait for the results."""
    mx.eval(list(arrays_in(trees)))  # pyright: ignore[reportUnknownMemberType] — untyped varargs
