"""Value types for eviction policies: what can be evicted, and the report of an eviction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from engine.cache.holdings import Holdings
from engine.cache.hot import HotCache, KvNode


@dataclass(frozen=True, slots=True)
class EvictLogits:
    """A victim of eviction: the logits kept at the end of a prompt. Other state is kept."""

    node: KvNode


@dataclass(frozen=True, slots=True)
class EvictSnapshot:
    """A victim of eviction: a node's snapshot. The K/V is kept while a node below needs it."""

    node: KvNode


@dataclass(frozen=True, slots=True)
class EvictNode:
    """A victim of eviction: a leaf of the radix tree, with its own K/V and its snapshot."""

    node: KvNode


@dataclass(frozen=True, slots=True)
class EvictHot:
    """A victim of eviction: a conversation's live caches, which no request uses.

    If a node references K/V in these caches and is still useful, it gets a copy of the K/V.
    """

    hot: HotCache


Victim = EvictLogits | EvictSnapshot | EvictNode | EvictHot


class Evicted(NamedTuple):
    """The report of one eviction."""

    victim: Victim
    num_bytes: int  # number of bytes freed
    removed: Sequence[KvNode]  # nodes removed from the tree, leaves first
    # Nodes still in the tree that lost a snapshot, logits or children, or whose span changed.
    changed: Sequence[KvNode]


class EvictionOrder(Protocol):
    """The order in which to evict the present contents of a prefix cache.

    After each call of next_victim, the caller evicts the victim and calls update.
    """

    def next_victim(self) -> Victim | None:
        """Return the next victim, or None if nothing is left to evict."""
        ...

    def update(self, evicted: Evicted) -> None:
        """Update the order after the last victim was evicted."""
        ...


# Function that returns the order in which to evict the present holdings.
Policy = Callable[[Holdings], EvictionOrder]
