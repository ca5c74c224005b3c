"""Conversion of cached state to tensors of a record and back, bit for bit. Engine thread only.

K/V and snapshots are trees: nested lists, tuples and dicts of arrays and plain values (trees.py).
The arrays become tensors. The structure becomes JSON in the notes of the record: a pair of a letter
and a value for each node of the tree. No code and no name of a class is stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import cast

import mlx.core as mx
import numpy as np

from engine.cache.disk.record import Record, RecordError, StoredArray
from engine.cache.trees import arrays_in, evaluate

TREE_NOTE = "tree"

# Largest depth of a stored tree. mlx-lm's states have a depth of at most five.
_MAX_DEPTH = 16
# Types by their names in safetensors: the type in MLX, and the type of the same size in numpy that
# carries its bits.
_TYPES = {
    "BOOL": (mx.bool_, np.uint8), "U8": (mx.uint8, np.uint8), "I8": (mx.int8, np.int8),
    "U16": (mx.uint16, np.uint16), "I16": (mx.int16, np.int16), "F16": (mx.float16, np.uint16),
    "BF16": (mx.bfloat16, np.uint16), "U32": (mx.uint32, np.uint32), "I32": (mx.int32, np.int32),
    "F32": (mx.float32, np.uint32), "U64": (mx.uint64, np.uint64), "I64": (mx.int64, np.int64),
}  # fmt: skip
_NAMES = {dtype: name for name, (dtype, _) in _TYPES.items()}
_CARRIERS = {2: mx.uint16, 4: mx.uint32}


class UnsupportedStateError(Exception):
    """A state contains a value that a record cannot hold."""


def encode(tree: object) -> tuple[str, dict[str, StoredArray]]:
    """Return the structure of a tree as JSON, and its arrays as tensors.

    All arrays are evaluated and contiguous. A tensor shares the memory of its array where it can,
    and keeps the array alive.

    Raises:
        UnsupportedStateError: the tree contains a value that a record cannot hold.
    """
    structure = json.dumps(_structure(tree, iter(range(1 << 20)), _MAX_DEPTH))
    arrays = [_checked(x) for x in arrays_in(tree)]
    # numpy knows no bfloat16, and the bits of a float must not change: carry them as integers.
    carried = [mx.contiguous(_carried(x)) for x in arrays]
    evaluate(carried)
    return structure, {
        str(number): StoredArray(_NAMES[x.dtype], x.shape, memoryview(bits))  # pyright: ignore[reportArgumentType] — an array is a buffer
        for number, (x, bits) in enumerate(zip(arrays, carried, strict=True))
    }


def decode(record: Record) -> object:
    """Return the tree of a record. Its arrays are evaluated copies.

    Raises:
        RecordError: structure and tensors do not fit together.
    """
    arrays = {name: _array(tensor) for name, tensor in record.tensors.items()}
    try:
        structure: object = json.loads(record.header.notes.get(TREE_NOTE, ""))
    except (ValueError, RecursionError) as error:
        raise RecordError("the structure is not JSON") from error
    tree = _tree(structure, arrays, _MAX_DEPTH)
    if sum(1 for _ in arrays_in(tree)) != len(arrays):
        raise RecordError("the structure does not use every tensor once")
    evaluate(tree)
    return tree


def _checked(x: mx.array) -> mx.array:
    if x.dtype not in _NAMES:
        raise UnsupportedStateError(f"an array of type {x.dtype}")
    return x


def _carried(x: mx.array) -> mx.array:
    if x.dtype == mx.bool_:
        return x.astype(mx.uint8)
    is_float = mx.issubdtype(x.dtype, mx.floating)
    return mx.contiguous(x).view(_CARRIERS[x.dtype.size]) if is_float else x


def _array(tensor: StoredArray) -> mx.array:
    if tensor.dtype not in _TYPES:
        raise RecordError("an array has an unknown type")
    dtype, carrier = _TYPES[tensor.dtype]
    bits = mx.array(np.frombuffer(tensor.data, dtype=carrier).reshape(tensor.shape))
    return bits.astype(mx.bool_) if dtype == mx.bool_ else bits.view(dtype)


def _structure(tree: object, numbers: Iterator[int], depth: int) -> list[object]:
    if depth == 0:
        raise UnsupportedStateError("a state that is nested too deeply")
    if isinstance(tree, mx.array):
        return ["a", next(numbers)]
    if isinstance(tree, (list, tuple)):
        items = [_structure(item, numbers, depth - 1) for item in cast("list[object]", tree)]
        return ["l" if isinstance(tree, list) else "t", items]
    if isinstance(tree, dict):
        table = cast("dict[object, object]", tree)
        if not all(isinstance(key, str) for key in table):
            raise UnsupportedStateError("a table whose keys are no names")
        return ["d", [[key, _structure(item, numbers, depth - 1)] for key, item in table.items()]]
    if tree is None or type(tree) in (bool, int, float, str):
        return ["v", tree]
    raise UnsupportedStateError(f"a value of type {type(tree).__name__}")


def _tree(structure: object, arrays: Mapping[str, mx.array], depth: int) -> object:
    if not isinstance(structure, list) or depth == 0:
        raise RecordError("the structure is invalid")
    match cast("list[object]", structure):
        case ["a", int(number)] if str(number) in arrays:
            return arrays[str(number)]
        case ["v", None | bool() | int() | float() | str() as value]:
            return value
        case ["l", items]:
            return [_tree(item, arrays, depth - 1) for item in _listed(items)]
        case ["t", items]:
            return tuple(_tree(item, arrays, depth - 1) for item in _listed(items))
        case ["d", items]:
            return dict(_named(item, arrays, depth - 1) for item in _listed(items))
        case _:
            raise RecordError("the structure is invalid")


def _named(item: object, arrays: Mapping[str, mx.array], depth: int) -> tuple[str, object]:
    match _listed(item):
        case [str(name), value]:
            return name, _tree(value, arrays, depth)
        case _:
            raise RecordError("the structure is invalid")


def _listed(items: object) -> list[object]:
    if not isinstance(items, list):
        raise RecordError("the structure is invalid")
    return cast("list[object]", items)
