"""Value types for eviction policies: what can be evicted, and the report of an eviction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from engine.cache.holdings import Holdings
from engine.cache.hot import HotCache, KvNode


@dataclass(frozen=True, slots=True)
class EvictLogits:
    """Evict the logits kept with a prompt's end, keep the state."""

    node: KvNode


@dataclass(frozen=True, slots=True)
class EvictSnapshot:
    """Evict a node's snapshot; its K/V stays while something below needs it."""

    node: KvNode


@dataclass(frozen=True, slots=True)
class EvictNode:
    """Evict a leaf that owns its K/V."""

    node: KvNode


@dataclass(frozen=True, slots=True)
class EvictHot:
    """Evict a parked cache; useful nodes in it get arrays of their own."""

    hot: HotCache


Victim = EvictLogits | EvictSnapshot | EvictNode | EvictHot


class Evicted(NamedTuple):
    """Report of one eviction."""

    victim: Victim
    num_bytes: int  # freed
    removed: Sequence[KvNode]  # from the tree, leaves first
    # Nodes still in the tree that lost a snapshot, logits or children, or whose span changed.
    changed: Sequence[KvNode]


class EvictionOrder(Protocol):
    """The order in which one holdings value is evicted.

    The caller evicts each victim, then reports it, before it asks for the next one.
    """

    def next_victim(self) -> Victim | None:
        """Return what to evict next, None if nothing is left."""
        ...

    def update(self, evicted: Evicted) -> None:
        """Take in the report of the newest victim's eviction."""
        ...


Policy = Callable[[Holdings], EvictionOrder]
