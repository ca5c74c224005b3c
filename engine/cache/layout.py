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
class KvLeaf(Protocol):
    """A cache of attention K/V, (B, H, tokens, D) a tensor, valid up to offset."""

    keys: object
    values: object
    offset: int

    def trim(self, n: int, /) -> int: ...


class AuxLeaf(Protocol):
    """Any other cache: a tree of arrays and numbers that can be taken out and put back."""

    state: object


@runtime_checkable
class Counted(Protocol):
    """A cache that knows how many tokens it has seen."""

    offset: int


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
        if hasattr(cache, "caches"):
            yield from leaves_of(cast("Sequence[object]", getattr(cache, "caches")))  # noqa: B009 — no type names it
        elif cache is not None:
            yield cache


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
            aux=tuple(cast("AuxLeaf", leaf) for leaf in leaves if not is_kv(leaf)),
        )


@dataclass(frozen=True, slots=True)
class Layout:
    """What a token and a snapshot cost, in bytes."""

    num_kv: int
    num_aux: int
    kv_bytes_per_token: int
    snapshot_bytes: int

    @property
    def needs_snapshot(self) -> bool:
        """Whether K/V alone cannot bring a conversation back."""
        return self.num_aux > 0


def measure_layout(
    caches: Sequence[object], n_tokens: int, nbytes: Callable[[object], int]
) -> Layout:
    """The layout from caches that were just fed n_tokens.

    Args:
        caches: the model's cache objects.
        n_tokens: how many tokens they hold.
        nbytes: bytes of all arrays in a tree.
    """
    leaves = Leaves.of(caches)
    assert all(leaf.offset == n_tokens for leaf in leaves.kv)
    # A buffer is longer than what it holds: count by shape, one token's share of it.
    per_token = sum(nbytes((leaf.keys, leaf.values)) // _capacity(leaf) for leaf in leaves.kv)
    return Layout(
        num_kv=len(leaves.kv),
        num_aux=len(leaves.aux),
        kv_bytes_per_token=per_token,
        snapshot_bytes=sum(nbytes(leaf.state) for leaf in leaves.aux),
    )


class _Shaped(Protocol):
    shape: tuple[int, ...]


def _capacity(leaf: KvLeaf) -> int:
    keys = leaf.keys
    first = cast("Sequence[_Shaped]", keys)[0] if isinstance(keys, (list, tuple)) else keys
    return cast("_Shaped", first).shape[-2]
