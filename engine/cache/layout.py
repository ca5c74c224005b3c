"""Classification of a model's cache objects: attention K/V, or auxiliary state.

A leaf is a cache object that contains no other caches. Most layers have one leaf. A layer with a
CacheList has several leaves. The methods and attributes of a leaf decide its kind, not the name of
the model. A K/V leaf can be cut at any token. An auxiliary leaf, such as a recurrent state or a
rotating window, cannot be cut: its state is valid only after exactly n tokens.

Callers:
    measure_layout   models/probe.py, once when a model is loaded, after a test prompt
    Leaves.of        cache/hot.py and others, for each new set of caches
    map_leaves       models/quantised_kv.py, to replace caches by quantised caches

This module imports no mlx: it reads only the shapes and sizes of arrays. It keeps no state. Leaves
and AuxLeaf reference the cache objects, so they always show the present contents.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeGuard, cast

from engine.cache.far import FarCaches


class CacheList(Protocol):
    """A cache object of one layer that contains several caches."""

    caches: Sequence[object]


class KvLeaf(Protocol):
    """A cache of attention K/V. Its tensors are (B, H, tokens, D) and valid up to `offset`.

    `keys` and `values` are None before the first token. In a quantised cache each of them is a
    tuple of arrays: quantised values, scales and biases.
    """

    keys: object
    values: object
    offset: int

    def trim(self, n: int, /) -> int:
        """Remove the last n tokens by lowering `offset`. Return the number of tokens removed."""
        ...


class AuxLeaf:
    """A cache object that holds auxiliary state. All attributes of the object are its state.

    The `state` property of mlx-lm's caches is not used: it can omit attributes, can lack a setter,
    and can raise an error while the cache is empty.
    """

    __slots__ = ("_attributes", "writes_in_place")

    def __init__(self, cache: object) -> None:
        self._attributes = vars(cache)
        # False for a cache with item assignment, such as mlx-lm's ArraysCache: each step replaces
        # its arrays, so a snapshot can reference the old arrays. True for a cache with
        # update_and_fetch, such as a rotating window, and for unknown caches: a step may write into
        # their arrays, so a snapshot must copy them.
        self.writes_in_place = not hasattr(cache, "__setitem__") or hasattr(
            cache, "update_and_fetch"
        )

    @property
    def state(self) -> object:
        """The cache's attributes, a tree of arrays and plain values. Callers must not change it.

        This is the live dict of the cache object. To keep a state, copy it with trees.map_arrays.
        Assignment replaces all attributes of the cache object.
        """
        return self._attributes

    @state.setter
    def state(self, state: object) -> None:
        self._attributes.clear()
        self._attributes.update(cast("dict[str, object]", state))

    @property
    def num_tokens(self) -> int | None:
        """Number of tokens that the cache has seen, or None if the cache does not count them."""
        return self._number("offset")

    @property
    def growth(self) -> float:
        """Factor by which the state can still grow: full size of a window / its present size.

        1 for a full window, for an empty one, and for state without a window.
        """
        window = self._number("max_size") or self._number("chunk_size")
        keys = self._attributes.get("keys")
        return max(1.0, window / _capacity(keys)) if window and keys is not None else 1.0

    def _number(self, name: str) -> int | None:
        value = self._attributes.get(name)
        return value if isinstance(value, int) else None


# Attributes of caches that drop their oldest tokens or do not start at token 0. Such caches cannot
# be cut at any token.
_WINDOW_NAMES = ("max_size", "chunk_size", "start_position", "left_padding")


def is_list(cache: object) -> TypeGuard[CacheList]:
    """Return True if a cache contains several caches. isinstance() would take 20 times as long."""
    return hasattr(cache, "caches")


def is_kv(leaf: object) -> TypeGuard[KvLeaf]:
    """Return True if a cache can be cut at any token. Its methods and attributes decide this."""
    # `step` shows that a cache grows its buffer in steps and writes new tokens in place.
    names = ("keys", "values", "offset", "trim", "update_and_fetch", "step")
    return all(hasattr(leaf, name) for name in names) and not any(
        hasattr(leaf, name) for name in _WINDOW_NAMES
    )


def leaves_of(caches: Sequence[object]) -> Iterator[object]:
    """Yield the leaf caches in order. Open each CacheList, and skip layers without a cache.

    The caches of other stages (far.py) have no leaves here.
    """
    for cache in caches:
        if is_list(cache):
            yield from leaves_of(cache.caches)
        elif cache is not None and not isinstance(cache, FarCaches):
            yield cache


def map_leaves(function: Callable[[object], object], caches: Sequence[object]) -> list[object]:
    """Return a new list of caches, in which each leaf is replaced by function(leaf).

    A CacheList is not copied: its caches are replaced in place. Layers without a cache stay None.
    The list contains no FarCaches, because pipeline/last_stage.py appends them later.
    """

    def mapped(cache: object) -> object:
        if is_list(cache):
            cache.caches = tuple(map_leaves(function, cache.caches))
            return cache
        return cache if cache is None else function(cache)

    return [mapped(cache) for cache in caches]


@dataclass(frozen=True, slots=True)
class Leaves:
    """The leaves of one set of cache objects, grouped into attention K/V and auxiliary state.

    A set belongs to one conversation. It has one cache object per layer.
    """

    kv: tuple[KvLeaf, ...]
    aux: tuple[AuxLeaf, ...]
    # The same conversation's caches in the other stages: one object, or none on one machine.
    far: tuple[FarCaches, ...] = ()

    @classmethod
    def of(cls, caches: Sequence[object]) -> Leaves:
        """Group the leaves of caches. The result references the caches, without a copy."""
        leaves = list(leaves_of(caches))
        return cls(
            kv=tuple(leaf for leaf in leaves if is_kv(leaf)),
            aux=tuple(AuxLeaf(leaf) for leaf in leaves if not is_kv(leaf)),
            far=tuple(cache for cache in caches if isinstance(cache, FarCaches)),
        )

    @property
    def buffers(self) -> list[object]:
        """K/V buffers: one (keys, values) pair per K/V leaf."""
        return [(leaf.keys, leaf.values) for leaf in self.kv]

    @property
    def states(self) -> list[object]:
        """Auxiliary states: one per auxiliary leaf."""
        return [leaf.state for leaf in self.aux]


@dataclass(frozen=True, slots=True)
class Layout:
    """Number of leaf caches of each kind in a model, and the bytes per token and per snapshot.

    PrefixCache and RequestMemory estimate memory with these numbers. snapshot_bytes counts rotating
    windows as full. If the model is divided into stages, they count all stages together.
    """

    num_kv: int  # number of leaves with attention K/V
    num_aux: int  # number of leaves with auxiliary state
    kv_bytes_per_token: int
    snapshot_bytes: int
    # The layouts of the single stages, rank 0 first. Empty for a model in one process.
    stages: tuple[Layout, ...] = ()

    @classmethod
    def of_stages(cls, stages: Sequence[Layout]) -> Layout:
        """Return the layout of a model whose stages have these layouts, rank 0 first."""
        return cls(
            num_kv=sum(stage.num_kv for stage in stages),
            num_aux=sum(stage.num_aux for stage in stages),
            kv_bytes_per_token=sum(stage.kv_bytes_per_token for stage in stages),
            snapshot_bytes=sum(stage.snapshot_bytes for stage in stages),
            stages=tuple(stages),
        )

    @property
    def needs_snapshot(self) -> bool:
        """True if the model has auxiliary state, which K/V alone cannot restore."""
        return self.num_aux > 0

    def max_tokens(self, num_bytes: int) -> int:
        """Return the highest number of tokens whose K/V and one snapshot take at most num_bytes."""
        kv_bytes = num_bytes - self.snapshot_bytes
        if kv_bytes < 0:
            return 0
        return kv_bytes // self.kv_bytes_per_token if self.kv_bytes_per_token else sys.maxsize


def measure_layout(
    caches: Sequence[object], num_tokens: int, nbytes: Callable[[object], int]
) -> Layout:
    """Return the layout of caches, measured after they were fed num_tokens tokens.

    Args:
        caches: the model's cache objects. They must hold at least one token, because empty caches
            have no arrays to measure.
        num_tokens: number of tokens that the caches hold.
        nbytes: function that returns the bytes of all arrays in a tree.
    """
    leaves = Leaves.of(caches)
    assert all(leaf.offset == num_tokens for leaf in leaves.kv)
    assert all(leaf.num_tokens in (None, num_tokens) for leaf in leaves.aux)
    # A buffer can hold more tokens than it contains. Divide its bytes by its capacity, not by
    # num_tokens.
    per_token = sum(nbytes((leaf.keys, leaf.values)) // _capacity(leaf.keys) for leaf in leaves.kv)
    return Layout(
        num_kv=len(leaves.kv),
        num_aux=len(leaves.aux),
        kv_bytes_per_token=per_token,
        snapshot_bytes=sum(int(nbytes(leaf.state) * leaf.growth) for leaf in leaves.aux),
    )


class _Shaped(Protocol):
    shape: tuple[int, ...]


def _capacity(keys: object) -> int:
    """Return the number of tokens that a buffer can hold. Quantised keys are a tuple of arrays."""
    first = cast("Sequence[_Shaped]", keys)[0] if isinstance(keys, (list, tuple)) else keys
    return cast("_Shaped", first).shape[-2]
