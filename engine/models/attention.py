"""Attention in pieces: by rows that have keys and values of their own, by blocks of a long pass's queries.

mlx-lm's models hand what their cache returned to one function. Where the caches of a batch returned
`Rows`, that function runs once a row; where a pass is long, once a block. Engine thread only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, cast

import mlx.core as mx
from mlx_lm.models import base

from engine.cache.trees import arrays_in, map_arrays

# Scores (queries x keys x heads) of one block. Two cores of a CPU take some 20 ms for so many; a GPU
# is given so many more that only a very long context is divided at all.
_MAX_SCORES_CPU = 1 << 19
_MAX_SCORES_GPU = 1 << 28

_attend = cast("Callable[..., mx.array]", base.scaled_dot_product_attention)
_NAME = _attend.__name__

_watching: list[dict[int, list[mx.array]]] = []


@contextmanager
def watched() -> Generator[dict[int, list[mx.array]]]:
    """What attention gives in a pass that is built meanwhile, block by block.

    Yields:
        Lazy arrays (B, H, block, D) by the id of a layer's cache; of layers that share one, the first's.
    """
    outputs: dict[int, list[mx.array]] = {}
    _watching.append(outputs)
    try:
        yield outputs
    finally:
        _watching.remove(outputs)


class Rows:
    """One value a row, where a model looks for one array: keys, values or a mask of each."""

    __slots__ = ("values",)

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values


@wraps(_attend)
def _attend_in_pieces(
    queries: mx.array, keys: Any, values: Any, cache: Any, scale: float, mask: Any, **options: Any
) -> mx.array:
    if isinstance(keys, Rows):
        return _attend_by_row(queries, keys, values, cache, scale, mask, **options)
    blocks = _attend_in_blocks(queries, keys, values, cache, scale, mask, **options)
    for outputs in _watching:
        outputs.setdefault(id(cache), blocks)
    return blocks[0] if len(blocks) == 1 else mx.concatenate(blocks, axis=2)


def _attend_by_row(
    queries: mx.array, keys: Rows, values: Rows, cache: Any, scale: float, mask: Any, **options: Any
) -> mx.array:
    """Of queries (B, H, 1, D) over (1, H', T, D) a row, each of its own T. (B, H, 1, D)."""
    num_rows = len(keys.values)
    masks = mask.values if isinstance(mask, Rows) else [mask] * num_rows
    rows = zip(
        mx.split(queries, num_rows), keys.values, values.values, cache.leaves, masks, strict=True
    )
    return mx.concatenate(
        [
            _attend(queries, keys, values, leaf, scale, mask, **options)
            for queries, keys, values, leaf, mask in rows
        ]
    )


def _attend_in_blocks(
    queries: mx.array, keys: Any, values: Any, cache: Any, scale: float, mask: Any, **options: Any
) -> list[mx.array]:
    """Of queries (B, H, L, D) over (B, H', T, D), or what those are quantised to. (B, H, block, D) each.

    Shapes alone say what a block is: a pass that is repeated gives the same bits on any occasion.
    """
    num_queries, num_keys = queries.shape[2], next(arrays_in(keys)).shape[2]
    # One query, as in each pass of an answer, is one block without asking.
    block_len = _block_len(queries, num_keys) if num_queries > 1 else 1
    if num_queries <= block_len:
        return [_attend(queries, keys, values, cache, scale, mask, **options)]
    blocks: list[mx.array] = []
    for start in range(0, num_queries, block_len):
        end = min(start + block_len, num_queries)
        seen, block_mask = num_keys, mask
        if mask == "causal":
            # The queries are the newest tokens: theirs are the last keys.
            seen = num_keys - num_queries + end
        elif mask is not None and mask.shape[-2] > 1:
            block_mask = mask[..., start:end, :]
        block_keys, block_values = _first(keys, seen), _first(values, seen)
        block = queries[:, :, start:end]
        blocks.append(_attend(block, block_keys, block_values, cache, scale, block_mask, **options))
    return blocks


def _block_len(queries: mx.array, num_keys: int) -> int:
    """How many queries are a block."""
    num_rows, num_heads, _, _ = queries.shape
    is_cpu = mx.default_device() == mx.Device(mx.cpu)
    max_scores = _MAX_SCORES_CPU if is_cpu else _MAX_SCORES_GPU
    return max(1, max_scores // (num_rows * num_heads * num_keys))


def _first(tree: object, num_tokens: int) -> object:
    """The keys or values of the first tokens, quantised or not."""
    return map_arrays(lambda array: array[:, :, :num_tokens], tree)


def attend_in_pieces() -> None:
    """Let the models that are imported by now attend by rows and by blocks."""
    for name, module in list(sys.modules.items()):
        if name.startswith(base.__package__ or "") and getattr(module, _NAME, None) is _attend:
            setattr(module, _NAME, _attend_in_pieces)
