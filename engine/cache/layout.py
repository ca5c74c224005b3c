"""Which layer of a model holds what, found by looking at its real cache objects.

A leaf cache either holds attention K/V that can be cut at any token, or it is auxiliary: a value
right after exactly n tokens and useless anywhere else. No model is known by name. No mlx here:
arrays are only asked for their size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeGuard, cast, runtime_checkable


@runtime_checkable
class CacheList(Protocol):
    """Several caches of one layer."""

    caches: Sequence[object]


@runtime_checkable
class KvLeaf(Protocol):
    """A cache of attention K/V, (B, H, tokens, D) a tensor, valid up to offset."""

    keys: object
    values: object
    offset: int

    def trim(self, n: int, /) -> int: ...


class AuxLeaf:
    """Any other cache object: all that it is, taken out and put back.

    Its attributes are its state. What a cache itself calls its state may leave things out, may not
    be settable, and may raise while the cache is empty.
    """

    __slots__ = ("_attributes", "writes_in_place")

    def __init__(self, cache: object) -> None:
        self._attributes = vars(cache)
        # A cache whose entries are assigned replaces its arrays; of any other we can't know.
        self.writes_in_place = not hasattr(cache, "__setitem__") or hasattr(
            cache, "update_and_fetch"
        )

    @property
    def state(self) -> object:
        """A tree of arrays and plain values, the cache's own: not to be changed."""
        return self._attributes

    @state.setter
    def state(self, state: object) -> None:
        self._attributes.clear()
        self._attributes.update(cast("dict[str, object]", state))

    @property
    def num_tokens(self) -> int | None:
        """How many tokens the cache says it has seen, None if it doesn't count them."""
        return self._number("offset")

    @property
    def growth(self) -> float:
        """How many times its size a window of K/V will have when it is full, 1 for all else."""
        window = self._number("max_size") or self._number("chunk_size")
        keys = self._attributes.get("keys")
        return max(1.0, window / _capacity(keys)) if window and keys is not None else 1.0

    def _number(self, name: str) -> int | None:
        value = self._attributes.get(name)
        return value if isinstance(value, int) else None


# A cache that forgets its oldest tokens, or starts anywhere but at token 0, can't be cut freely.
_WINDOW_NAMES = ("max_size", "chunk_size", "start_position", "left_padding")


def is_kv(leaf: object) -> TypeGuard[KvLeaf]:
    """Whether a leaf can be cut at any token, judged by what it can do."""
    # A buffer that grows in steps: it has room beyond offset, which is what we write to.
    names = ("keys", "values", "offset", "trim", "update_and_fetch", "step")
    return all(hasattr(leaf, name) for name in names) and not any(
        hasattr(leaf, name) for name in _WINDOW_NAMES
    )


def leaves_of(caches: Sequence[object]) -> Iterator[object]:
    """The leaf caches in order; a layer's list of caches is opened, a layer without one skipped."""
    for cache in caches:
        if isinstance(cache, CacheList):
            yield from leaves_of(cache.caches)
        elif cache is not None:
            yield cache


def map_leaves(function: Callable[[object], object], caches: Sequence[object]) -> list[object]:
    """The same caches with function(leaf) in place of every leaf; lists of caches are changed."""

    def mapped(cache: object) -> object:
        if isinstance(cache, CacheList):
            cache.caches = tuple(map_leaves(function, cache.caches))
            return cache
        return cache if cache is None else function(cache)

    return [mapped(cache) for cache in caches]


@dataclass(frozen=True, slots=True)
class Leaves:
    """The leaf caches of one conversation, by kind."""

    kv: tuple[KvLeaf, ...]
    aux: tuple[AuxLeaf, ...]

    @classmethod
    def of(cls, caches: Sequence[object]) -> Leaves:
        leaves = list(leaves_of(caches))
        return cls(
            kv=tuple(leaf for leaf in leaves if is_kv(leaf)),
            aux=tuple(AuxLeaf(leaf) for leaf in leaves if not is_kv(leaf)),
        )

    @property
    def buffers(self) -> list[object]:
        """The K/V buffers, (keys, values) a leaf."""
        return [(leaf.keys, leaf.values) for leaf in self.kv]

    @property
    def states(self) -> list[object]:
        """The auxiliary states, one a leaf."""
        return [leaf.state for leaf in self.aux]


@dataclass(frozen=True, slots=True)
class Layout:
    """What a token and a snapshot cost, in bytes. A snapshot's windows are taken to be full."""

    num_kv: int
    num_aux: int
    kv_bytes_per_token: int
    snapshot_bytes: int

    @property
    def needs_snapshot(self) -> bool:
        """Whether K/V alone cannot bring a conversation back."""
        return self.num_aux > 0


def measure_layout(
    caches: Sequence[object], num_tokens: int, nbytes: Callable[[object], int]
) -> Layout:
    """The layout from caches that were just fed num_tokens.

    Args:
        caches: the model's cache objects.
        num_tokens: how many tokens they hold.
        nbytes: bytes of all arrays in a tree.
    """
    leaves = Leaves.of(caches)
    assert all(leaf.offset == num_tokens for leaf in leaves.kv)
    assert all(leaf.num_tokens in (None, num_tokens) for leaf in leaves.aux)
    # A buffer is longer than what it holds: count by shape, one token's share of it.
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
    first = cast("Sequence[_Shaped]", keys)[0] if isinstance(keys, (list, tuple)) else keys
    return cast("_Shaped", first).shape[-2]
