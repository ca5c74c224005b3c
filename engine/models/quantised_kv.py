"""Attention K/V kept in 4 or 8 bits: which caches of a model, and in groups of how many values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import mlx.core as mx

from engine.cache.layout import is_kv, leaves_of, map_leaves

# Larger groups cost fewer bytes for scales; both divide into what the kernels take.
_GROUP_SIZES = (64, 32)


class _Quantisable(Protocol):
    """mlx-lm's K/V cache before its first token."""

    def to_quantized(self, *, group_size: int, bits: int) -> object: ...


@dataclass(frozen=True, slots=True)
class KvQuantisation:
    """How the leaf caches of a model are quantised, in order; a group size of 0: not at all."""

    bits: int
    group_sizes: tuple[int, ...]

    def only(self, index: int) -> KvQuantisation:
        """The same for one leaf alone."""
        return KvQuantisation(
            self.bits, tuple(size if i == index else 0 for i, size in enumerate(self.group_sizes))
        )


def quantise(caches: Sequence[object], quantisation: KvQuantisation) -> list[object]:
    """Empty caches with quantised ones in place of those that can be."""
    sizes = iter(quantisation.group_sizes)

    def replaced(leaf: object) -> object:
        size = next(sizes)
        if not size:
            return leaf
        return cast("_Quantisable", leaf).to_quantized(group_size=size, bits=quantisation.bits)

    return map_leaves(replaced, caches)


def group_sizes_of(caches: Sequence[object]) -> Iterator[int]:
    """In what groups the K/V of filled caches can be quantised, leaf by leaf; 0 if they can't."""
    for cache in caches:
        leaves = list(leaves_of([cache]))
        # A layer with two of them finds by one what it reads of the other, in masks of its own.
        is_alone = sum(map(is_kv, leaves)) == 1
        yield from (_group_size_of(leaf) if is_alone else 0 for leaf in leaves)


def _group_size_of(leaf: object) -> int:
    if not is_kv(leaf) or not hasattr(leaf, "to_quantized"):
        return 0
    dims = [cast("mx.array", array).shape[-1] for array in (leaf.keys, leaf.values)]
    return next((n for n in _GROUP_SIZES if all(d and d % n == 0 for d in dims)), 0)
