"""Nested lists, tuples and dicts of arrays and plain values, as mlx-lm's caches keep them.

The one typed door to them: `mlx.utils` has no types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

import mlx.core as mx

# MLX shares a buffer that is larger than a contiguous slice of it by up to 16 KiB. From here on
# that is next to nothing, below a copy is.
_LARGE_BYTES = 1 << 20


def arrays_in(tree: object) -> Iterator[mx.array]:
    """All arrays of a tree, in order."""
    if isinstance(tree, mx.array):
        yield tree
    elif isinstance(tree, (list, tuple)):
        for item in cast("list[object]", tree):
            yield from arrays_in(item)
    elif isinstance(tree, dict):
        for item in cast("dict[object, object]", tree).values():
            yield from arrays_in(item)


def map_arrays(function: Callable[[mx.array], mx.array], tree: object) -> object:
    """The same tree in new containers, with function applied to every array."""
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
    """Bytes of all arrays of a tree."""
    return sum(array.nbytes for array in arrays_in(tree))


def owned(x: mx.array) -> mx.array:
    """Once evaluated: x without the larger array that it may be a slice of."""
    return mx.contiguous(x) if x.nbytes >= _LARGE_BYTES else mx.array(x)


def evaluate_soon(*trees: object) -> None:
    """Begin to compute every lazy array; whoever looks at one waits for it."""
    mx.async_eval(list(arrays_in(trees)))  # pyright: ignore[reportUnknownMemberType] — untyped varargs


def evaluate(*trees: object) -> None:
    """Compute every lazy array in one go."""
    mx.eval(list(arrays_in(trees)))  # pyright: ignore[reportUnknownMemberType] — untyped varargs
