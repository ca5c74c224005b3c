"""Keep attention K/V in 4 or 8 bits instead of the precision in which they are computed.

Quantised values share a scale in groups of 32 or 64. Not all caches of a model can be quantised.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import mlx.core as mx

from engine.cache.layout import is_kv, leaves_of, map_leaves

# Group sizes that MLX's kernels support, the preferred one first: larger groups need fewer scales.
_GROUP_SIZES = (64, 32)


class _Quantisable(Protocol):
    """An empty K/V cache of mlx-lm that can be converted to a quantised cache."""

    def to_quantized(self, *, group_size: int, bits: int) -> object: ...


@dataclass(frozen=True, slots=True)
class KvQuantisation:
    """The quantisation of all leaf caches of a model."""

    bits: int  # per value
    group_sizes: tuple[int, ...]  # one per leaf cache, in order; 0 if the cache is not quantised

    def only(self, index: int) -> KvQuantisation:
        """Return a copy that quantises only the leaf cache at index."""
        return KvQuantisation(
            self.bits, tuple(size if i == index else 0 for i, size in enumerate(self.group_sizes))
        )


def quantise(caches: Sequence[object], quantisation: KvQuantisation) -> list[object]:
    """Return empty caches, with quantised caches in the places that quantisation selects."""
    sizes = iter(quantisation.group_sizes)

    def replaced(leaf: object) -> object:
        size = next(sizes)
        if not size:
            return leaf
        return cast("_Quantisable", leaf).to_quantized(group_size=size, bits=quantisation.bits)

    return map_leaves(replaced, caches)


def group_sizes_of(caches: Sequence[object]) -> Iterator[int]:
    """Yield the group size for each leaf cache; 0 if the leaf cache cannot be quantised.

    The caches must hold at least one token: the size of K/V decides which groups are possible.
    """
    for cache in caches:
        leaves = list(leaves_of([cache]))
        # A layer with two K/V caches uses one as an index to the other, with its own code for masks
        # that does not support quantised K/V.
        is_alone = sum(map(is_kv, leaves)) == 1
        yield from (_group_size_of(leaf) if is_alone else 0 for leaf in leaves)


def _group_size_of(leaf: object) -> int:
    if not is_kv(leaf) or not hasattr(leaf, "to_quantized"):
        return 0
    dims = [cast("mx.array", array).shape[-1] for array in (leaf.keys, leaf.values)]
    return next((n for n in _GROUP_SIZES if all(d and d % n == 0 for d in dims)), 0)
