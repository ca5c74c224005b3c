"""Compute attention row by row in a batch, and block by block in a long prompt.

All models of mlx-lm compute attention with one function, `scaled_dot_product_attention`. Its
arguments are the queries, and the keys and values that a layer's cache returned. Each time a model
is loaded, the loader calls `attend_in_pieces`, which replaces that function in all imported model
modules. The replacement divides the work in two cases:

- Batch: each conversation is a row. The K/V of the rows have different lengths, so the caches of a
  batch (rows.py) return a `Rows` object instead of one array. Attention runs once per row, and no
  K/V are copied or padded.
- Long prompt: while the attention of one layer is computed, no other conversation gets a token.
  SmolLM2 needs 0.4 s for 4,000 tokens on two CPU cores. So the queries are divided into blocks.
  `watched` collects the lazy result of each block, and the prefill (runner/prefill.py) evaluates a
  few blocks at a time.

Use on the engine thread.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, cast

import mlx.core as mx
from mlx_lm.models import base

from engine.cache.layout import leaves_of
from engine.cache.trees import arrays_in, map_arrays

# Highest number of scores (queries x keys x heads) in one block. Two CPU cores compute a block of
# this size in about 20 ms. On a GPU the limit is so high that only a very long context is divided.
_MAX_SCORES_CPU = 1 << 19
_MAX_SCORES_GPU = 1 << 28

_attend = cast("Callable[..., mx.array]", base.scaled_dot_product_attention)
_NAME = _attend.__name__


class Watched:
    """The parts of passes: lazy arrays, each of which depends only on those before it."""

    def __init__(self) -> None:
        # Key: id() of a layer's cache. Value: the results of attention in the newest pass, one per
        # block, of shape (B, H, block, D). If several layers share a cache, those of the first
        # layer.
        self.blocks: dict[int, list[mx.array]] = {}
        self._earlier: list[list[mx.array]] = []  # parts of the passes before the newest

    def begin_pass(self, caches: Sequence[object]) -> None:
        """Begin another pass over the same caches."""
        # A cache assigns to slices of its arrays, which then are those of the next pass.
        # stop_gradient returns another object for an array of this pass.
        self._earlier += [[mx.stop_gradient(x) for x in part] for part in self._newest(caches)]
        self.blocks = {}

    def parts(self, caches: Sequence[object]) -> list[list[mx.array]]:
        """Return the parts of all passes: the arrays of each layer's cache, then its attention."""
        return [*self._earlier, *self._newest(caches)]

    def _newest(self, caches: Sequence[object]) -> list[list[mx.array]]:
        parts: list[list[mx.array]] = []
        for leaf in leaves_of(caches):
            parts.append(list(arrays_in(vars(leaf))))
            parts.extend([block] for block in self.blocks.get(id(leaf), ()))
        return parts


# The objects of all active `watched` contexts.
_watching: list[Watched] = []


@contextmanager
def watched() -> Generator[Watched]:
    """Collect the parts of the passes that are built inside the with block."""
    parts = Watched()
    _watching.append(parts)
    try:
        yield parts
    finally:
        _watching.remove(parts)


def begin_pass(caches: Sequence[object]) -> None:
    """Let the active contexts know that another pass over the same caches begins."""
    for one in _watching:
        one.begin_pass(caches)


class Rows:
    """A list of keys, values or masks, one per row of a batch. It stands in for a single array."""

    __slots__ = ("values",)

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values


@wraps(_attend)
def _attend_in_pieces(
    queries: mx.array, keys: Any, values: Any, cache: Any, scale: float, mask: Any, **options: Any
) -> mx.array:
    """Compute attention row by row for a batch, and block by block otherwise.

    This is the replacement for mlx-lm's function, with the same arguments. Models call it once per
    attention layer in each pass. The replacement adds the result of each block to all active
    `watched` contexts.
    """
    if isinstance(keys, Rows):
        return _attend_by_row(queries, keys, values, cache, scale, mask, **options)
    blocks = _attend_in_blocks(queries, keys, values, cache, scale, mask, **options)
    for one in _watching:
        one.blocks.setdefault(id(cache), blocks)
    return blocks[0] if len(blocks) == 1 else mx.concatenate(blocks, axis=2)


def _attend_by_row(
    queries: mx.array, keys: Rows, values: Rows, cache: Any, scale: float, mask: Any, **options: Any
) -> mx.array:
    """Compute attention for a batch in which every row has its own keys and values.

    Args:
        queries: one query per row, of shape (B, H, 1, D).
        keys: the keys of each row, of shape (1, H', T, D), plain or quantised. T differs by row.
        values: the values of each row, in the same form as keys.
        cache: the batch's cache of this layer. It contains one cache per row.
        scale: factor for the attention scores.
        mask: one mask per row, one mask for all rows, or None.
        **options: further arguments for mlx-lm's function.

    Returns:
        An array of shape (B, H, 1, D).
    """
    num_rows = len(keys.values)
    masks = mask.values if isinstance(mask, Rows) else [mask] * num_rows
    # mlx-lm's function reads from the cache whether the keys and values are quantised, so each row
    # needs its own cache (leaf).
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
    """Compute attention block by block. A block is a range of queries.

    On one device, the size of the blocks depends only on the shapes of the arrays. So the same pass
    always gives the same bits, even if other work runs between two blocks.

    Args:
        queries: an array of shape (B, H, L, D).
        keys: an array of shape (B, H', T, D), plain or quantised.
        values: the values, in the same form as keys.
        cache: the cache of this layer.
        scale: factor for the attention scores.
        mask: "causal", a mask array or None.
        **options: further arguments for mlx-lm's function.

    Returns:
        One array of shape (B, H, block, D) per block.
    """
    num_queries, num_keys = queries.shape[2], next(arrays_in(keys)).shape[2]
    # A decode step has a single query, which is never divided.
    block_len = _block_len(queries, num_keys) if num_queries > 1 else 1
    if num_queries <= block_len:
        return [_attend(queries, keys, values, cache, scale, mask, **options)]
    blocks: list[mx.array] = []
    for start in range(0, num_queries, block_len):
        end = min(start + block_len, num_queries)
        seen, block_mask = num_keys, mask
        if mask == "causal":
            # The causal mask hides the keys of all tokens after a query's token. So this block
            # needs only the keys up to the token of its last query.
            seen = num_keys - num_queries + end
        # A mask with a single row holds for all queries, so it is not divided.
        elif mask is not None and mask.shape[-2] > 1:
            block_mask = mask[..., start:end, :]
        block_keys, block_values = _first(keys, seen), _first(values, seen)
        block = queries[:, :, start:end]
        blocks.append(_attend(block, block_keys, block_values, cache, scale, block_mask, **options))
    return blocks


def _block_len(queries: mx.array, num_keys: int) -> int:
    """Return the number of queries in one block."""
    num_rows, num_heads, _, _ = queries.shape
    is_cpu = mx.default_device() == mx.Device(mx.cpu)
    max_scores = _MAX_SCORES_CPU if is_cpu else _MAX_SCORES_GPU
    return max(1, max_scores // (num_rows * num_heads * num_keys))


def _first(tree: object, num_tokens: int) -> object:
    """Return the keys or values of the first num_tokens tokens, in plain or quantised form."""
    return map_arrays(lambda array: array[:, :, :num_tokens], tree)


def attend_in_pieces() -> None:
    """Replace the attention function in all model modules of mlx-lm that are imported so far.

    Call after each load of a model, because loading imports the module of the model's architecture.
    Modules that already have the replacement stay as they are.
    """
    for name, module in list(sys.modules.items()):
        if name.startswith(base.__package__ or "") and getattr(module, _NAME, None) is _attend:
            setattr(module, _NAME, _attend_in_pieces)
