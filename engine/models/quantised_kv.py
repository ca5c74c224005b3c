"""Store attention K/V as quantised values of 4 or 8 bits, to save memory.

Each group of 32 or 64 quantised values shares a scale. Caches that cannot be quantised stay as they
are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import mlx.core as mx

from engine.cache.layout import is_kv, leaves_of, map_leaves

# Group sizes that MLX's kernels support, best first: larger groups need fewer scales.
_GROUP_SIZES = (64, 32)


class _Quantisable(Protocol):
    """An empty K/V cache of mlx-lm that can be converted to a quantised cache."""

    def to_quantized(self, *, group_size: int, bits: int) -> object: ...


@dataclass(frozen=True, slots=True)
class KvQuantisation:
    """Group sizes and bits for quantising the caches of a model.

    A layer's cache can contain several caches. A leaf cache is a cache that contains no other
    cache.
    """

    bits: int  # bits per value
    # Group size of each leaf cache, in the order of the caches. 0 if the cache is not quantised.
    group_sizes: tuple[int, ...]

    def only(self, index: int) -> KvQuantisation:
        """Return a copy in which only the leaf cache at index is quantised."""
        return KvQuantisation(
            self.bits, tuple(size if i == index else 0 for i, size in enumerate(self.group_sizes))
        )


def quantise(caches: Sequence[object], quantisation: KvQuantisation) -> list[object]:
    """Return a copy of empty caches, in which the selected leaf caches are quantised."""
    sizes = iter(quantisation.group_sizes)

    def replaced(leaf: object) -> object:
        size = next(sizes)
        if not size:
            return leaf
        return cast("_Quantisable", leaf).to_quantized(group_size=size, bits=quantisation.bits)

    return map_leaves(replaced, caches)


def group_sizes_of(caches: Sequence[object]) -> Iterator[int]:
    """Yield the group size for each leaf cache, or 0 if the leaf cache cannot be quantised.

    The caches must contain at least one token, because the group size depends on the size of the
    K/V.
    """
    for cache in caches:
        leaves = list(leaves_of([cache]))
        # Do not quantise the caches of a layer with two K/V caches. Such layers compute their masks
        # with their own code, and this code does not support quantised K/V.
        is_alone = sum(map(is_kv, leaves)) == 1
        yield from (_group_size_of(leaf) if is_alone else 0 for leaf in leaves)


def _group_size_of(leaf: object) -> int:
    if not is_kv(leaf) or not hasattr(leaf, "to_quantized"):
        return 0
    dims = [cast("mx.array", array).shape[-1] for array in (leaf.keys, leaf.values)]
    return next((n for n in _GROUP_SIZES if all(d and d % n == 0 for d in dims)), 0)
