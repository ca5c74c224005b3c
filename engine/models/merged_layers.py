"""The caches of one layer for all rows of a batch. MergedRows (rows.py) makes them.

Use on the engine thread.
"""

# mlx-lm's cache classes have no type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx
from mlx_lm.models.cache import ArraysCache
from typing_extensions import override

from engine.cache.trees import owned
from engine.models.attention import Rows


class RowPositions:
    """The positions of the rows' next tokens. All layers of a group share this object.

    Layers reference this object instead of the group. If layers referenced the group, there would
    be a reference cycle, and the group's arrays would stay in memory until a garbage collection.
    """

    # Array of shape (B,); a single number if all rows have the same length.
    offset: int | mx.array = 0


class RowAttention:
    """The K/V caches of all rows in one layer. Models use this object like one mlx-lm cache."""

    def __init__(self, positions: RowPositions, leaves: Sequence[Any]) -> None:
        self._positions = positions
        self.leaves = leaves
        # Number of tokens of each leaf before the newest pass. Empty before the first pass.
        self.before: list[int] = []

    @property
    def offset(self) -> int | mx.array:
        return self._positions.offset

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[Rows, Rows]:
        """Append each row's new keys and values. Return all keys and values.

        The new keys and the new values have the shape (B, H, L, D).
        """
        num_rows = len(self.leaves)
        new = zip(self.leaves, mx.split(keys, num_rows), mx.split(values, num_rows), strict=True)
        rows = [leaf.update_and_fetch(keys, values) for leaf, keys, values in new]
        return Rows([keys for keys, _ in rows]), Rows([values for _, values in rows])

    def make_mask(self, *args: Any, **options: Any) -> Rows | None:
        masks = [leaf.make_mask(*args, **options) for leaf in self.leaves]
        return None if all(mask is None for mask in masks) else Rows(masks)


class MergedStates:
    """The recurrent states of one layer. The states of all rows are merged into one cache."""

    def __init__(self, leaves: Sequence[ArraysCache]) -> None:
        self._leaves = leaves
        self.merged = _UnpaddedStates(len(leaves[0].cache))
        columns = zip(*(leaf.cache for leaf in leaves), strict=True)
        self.merged.cache = [mx.concatenate(list(column)) for column in columns]
        self.before: list[Any] = list(self.merged.cache)  # the states before the newest pass

    def split(self, row: int, *, undoing: bool) -> None:
        """Copy a row's part of the merged state back into the row's own cache."""
        arrays: list[Any] = self.before if undoing else self.merged.cache
        self._leaves[row].cache = [owned(array[row : row + 1]) for array in arrays]


class _UnpaddedStates(ArraysCache):
    """Merged states without a padding mask: padding is removed after the pass, by `keep`."""

    @override
    def make_mask(self, N: int) -> None:
        return None
