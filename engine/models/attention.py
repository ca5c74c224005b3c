"""Attention of several rows, each over keys and values of its own; and a look at what it gives.

mlx-lm's models hand what their cache returned to one function. Where the caches of a batch returned
`Rows`, that function runs once a row; for plain arrays it stays what it was. Engine thread only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, cast

import mlx.core as mx
from mlx_lm.models import base

_attend = cast("Callable[..., mx.array]", base.scaled_dot_product_attention)
_NAME = _attend.__name__

_watching: list[dict[int, mx.array]] = []


@contextmanager
def watched() -> Generator[dict[int, mx.array]]:
    """What attention gives in a pass that is built meanwhile: lazy, by the id of a layer's cache."""
    outputs: dict[int, mx.array] = {}
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
def _attend_by_row(
    queries: mx.array, keys: Any, values: Any, cache: Any, scale: float, mask: Any, **options: Any
) -> mx.array:
    """Of queries (B, H, 1, D) over (1, H', T, D) a row, each of its own T. (B, H, 1, D)."""
    if not isinstance(keys, Rows):
        output = _attend(queries, keys, values, cache, scale, mask, **options)
        for outputs in _watching:
            outputs.setdefault(id(cache), output)
        return output
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


def attend_by_row() -> None:
    """Let the models that are imported by now attend row by row where their caches want it."""
    for name, module in list(sys.modules.items()):
        if name.startswith(base.__package__ or "") and getattr(module, _NAME, None) is _attend:
            setattr(module, _NAME, _attend_by_row)
