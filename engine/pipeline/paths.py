"""Arrays inside nested arguments and results, and the paths that lead to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import mlx.core as mx

# Keys and indices from the outermost container to an array. () is the array itself.
Path = tuple[Any, ...]


def array_paths(tree: object, path: Path = ()) -> Iterator[tuple[Path, mx.array]]:
    """Yield each array of a tree of lists, tuples and dicts, with its path."""
    if isinstance(tree, mx.array):
        yield path, tree
    elif isinstance(tree, (list, tuple)):
        for index, item in enumerate(cast("list[object]", tree)):
            yield from array_paths(item, (*path, index))
    elif type(tree) is dict:
        for key, item in cast("dict[object, object]", tree).items():
            yield from array_paths(item, (*path, key))


def map_paths(function: Callable[[Path, mx.array], object], tree: object, path: Path = ()) -> Any:
    """Return a copy of a tree in which each array is replaced by function(path, array)."""
    if isinstance(tree, mx.array):
        return function(path, tree)
    if isinstance(tree, (list, tuple)):
        items = enumerate(cast("list[object]", tree))
        mapped = [map_paths(function, item, (*path, index)) for index, item in items]
        return mapped if isinstance(tree, list) else tuple(mapped)
    if type(tree) is dict:
        entries = cast("dict[object, object]", tree).items()
        return {key: map_paths(function, item, (*path, key)) for key, item in entries}
    return tree


def with_arrays(tree: object, arrays: Mapping[Path, mx.array]) -> Any:
    """Return a copy of a tree with other arrays at some paths."""
    return map_paths(arrays.get, tree)
