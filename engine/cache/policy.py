"""Value types for eviction policies: the victims of eviction, and the report of an eviction.

A policy ranks the contents of a prefix cache (ranking.py is the default policy). eviction.py asks
it for one victim at a time, evicts the victim, and reports the effects back as an `Evicted`.
"""

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
    """A victim of eviction: a node's snapshot.

    The node's K/V is kept while a node below needs it, or while it lies in a parked cache.
    Otherwise the node is removed too.
    """

    node: KvNode


@dataclass(frozen=True, slots=True)
class EvictNode:
    """A victim of eviction: a leaf of the radix tree, with its own K/V and its snapshot."""

    node: KvNode


@dataclass(frozen=True, slots=True)
class EvictHot:
    """A victim of eviction: a conversation's parked cache (live caches that no request uses).

    If a node references K/V in this cache and is still useful, it gets a copy of the K/V. If
    another parked cache holds the same tokens, the node references that cache instead. Nodes that
    are not useful are removed.
    """

    hot: HotCache


Victim = EvictLogits | EvictSnapshot | EvictNode | EvictHot


class Evicted(NamedTuple):
    """The report of one eviction.

    `removed`: the nodes removed from the tree, leaves first. `changed`: the nodes still in the tree
    that lost a snapshot, logits or a child, or whose K/V moved. The parent of the last removed node
    is one of them.
    """

    victim: Victim
    num_bytes: int  # number of bytes freed
    removed: Sequence[KvNode]
    changed: Sequence[KvNode]


class EvictionOrder(Protocol):
    """The order in which to evict the present contents of a prefix cache.

    After each call of next_victim, the caller evicts the victim and calls update.
    """

    def next_victim(self) -> Victim | None:
        """Return the next victim, or None if nothing is left to evict. Evict nothing."""
        ...

    def update(self, evicted: Evicted) -> None:
        """Update the order after the last victim was evicted. Rank the affected state again."""
        ...


# Function that returns the order in which to evict the present holdings.
Policy = Callable[[Holdings], EvictionOrder]
