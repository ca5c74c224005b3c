"""State of a prefix cache, shared by its parts, and the rules of what is useful in it. Engine thread only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import mlx.core as mx

from engine.cache.hot import HotCache, KvNode, KvTree, lender
from engine.cache.radix import RadixTree
from engine.cache.snapshot import Snapshot
from engine.types import CacheStatistics, ConversationId


@dataclass(frozen=True, slots=True)
class Ledger:
    """Bytes held by the prefix cache; lent spans count with the hot cache that they lie in."""

    kv_bytes: int
    snapshot_bytes: int
    hot_bytes: int

    @property
    def total_bytes(self) -> int:
        return self.kv_bytes + self.snapshot_bytes + self.hot_bytes


@dataclass(slots=True, eq=False)
class Lease:
    """Live caches in use by one request, holding `restored` tokens of its prompt at first."""

    hot: HotCache
    restored: int
    matched: int  # tokens of the prompt whose K/V was there
    logits: mx.array | None  # of the prompt's last token, when all of it was restored
    side: bool  # nothing is published or evicted for the request
    locked: KvNode | None  # the deepest node restored from
    faulted: int  # tokens up to the deepest stored point that was found wrong
    snapshots: list[Snapshot] = field(default_factory=list[Snapshot])  # until published
    reserved: int = 0  # tokens that its buffers were made large enough for


@dataclass(slots=True)
class Counters:
    """Events since the model was loaded."""

    matches: int = 0
    evictions: int = 0
    restore_faults: int = 0
    copied_bytes: int = 0
    audits: int = 0
    audit_faults: int = 0


@dataclass(slots=True, eq=False)
class Holdings:
    """The tree, the live caches that its nodes may lie in, and the rules of what is useful."""

    needs_snapshot: bool  # K/V alone cannot restore the model
    kv_bytes_per_token: int
    tree: KvTree = field(default_factory=RadixTree)
    parked: dict[ConversationId, HotCache] = field(default_factory=dict[ConversationId, HotCache])
    leases: list[Lease] = field(default_factory=list[Lease])
    pinned: set[ConversationId] = field(default_factory=set[ConversationId])
    clock: int = 0  # turns published
    counters: Counters = field(default_factory=Counters)

    def add_lease(self, lease: Lease) -> None:
        """Lock the nodes that a lease was restored from."""
        self.tree.lock(lease.locked)
        self.leases.append(lease)

    def remove_lease(self, lease: Lease) -> None:
        """Unlock the nodes of a lease. Idempotent."""
        if lease in self.leases:
            self.leases.remove(lease)
            self.tree.unlock(lease.locked)

    def ledger(self) -> Ledger:
        """Count the bytes held. There is no running total that could drift."""
        kv_bytes = snapshot_bytes = 0
        for node in self.tree.nodes():
            kv_bytes += node.span.nbytes
            if node.snapshot is not None:
                snapshot_bytes += node.snapshot.nbytes
        hot = [*self.parked.values(), *(lease.hot for lease in self.leases)]
        pending = [snapshot for lease in self.leases for snapshot in lease.snapshots]
        return Ledger(
            kv_bytes=kv_bytes,
            snapshot_bytes=snapshot_bytes + sum(snapshot.nbytes for snapshot in pending),
            hot_bytes=sum(cache.nbytes for cache in hot),
        )

    def statistics(self, budget_bytes: int) -> CacheStatistics:
        """Return the figures that the app shows."""
        ledger = self.ledger()
        nodes = list(self.tree.nodes())
        return CacheStatistics(
            kv_bytes=ledger.kv_bytes,
            snapshot_bytes=ledger.snapshot_bytes,
            hot_bytes=ledger.hot_bytes,
            total_bytes=ledger.total_bytes,
            budget_bytes=budget_bytes,
            num_nodes=len(nodes),
            num_snapshots=sum(node.snapshot is not None for node in nodes),
            num_hot=len(self.parked),
            matches=self.counters.matches,
            evictions=self.counters.evictions,
            restore_faults=self.counters.restore_faults,
            copied_bytes=self.counters.copied_bytes,
            audits=self.counters.audits,
            audit_faults=self.counters.audit_faults,
        )

    # Rules

    def is_resume_point(self, node: KvNode) -> bool:
        """Return whether a request could resume at a node's end."""
        return node.snapshot is not None or not self.needs_snapshot

    def is_dead_end(self, node: KvNode, *, num_removed: int = 0) -> bool:
        """Return whether no request uses a node, and none could resume at it or below it.

        num_removed: children of the node that are about to be removed.
        """
        return not (
            self.is_resume_point(node) or len(node.children) > num_removed or node.lock_count
        )

    def is_useless_leaf(self, node: KvNode) -> bool:
        """Return whether a node takes memory for nothing. A lent one takes none of its own."""
        return lender(node) is None and self.is_dead_end(node)

    def removed_with(self, leaf: KvNode) -> list[KvNode]:
        """Return a leaf and the nodes above it that are dead ends without it, nearest first.

        The chain ends at the first node whose K/V lies elsewhere than the leaf's: in other arrays, or in
        another hot cache.
        """
        hot, removed, above = lender(leaf), [leaf], leaf.parent
        while above and self.is_dead_end(above, num_removed=1) and lender(above) is hot:
            removed.append(above)
            above = above.parent
        return removed

    def useful_nodes(self, lent: Sequence[KvNode]) -> Sequence[KvNode]:
        """Return the nodes that are kept when their hot cache goes: all but the dead ends.

        Args:
            lent: the nodes that lie in one hot cache, from some node on, parents first. They lie on
                one path: that of the cache's tokens.
        """
        if not lent or not self.is_dead_end(lent[-1]):
            return lent
        first = lent[0].start
        num_dead = sum(node.start >= first for node in self.removed_with(lent[-1]))
        return lent[:-num_dead]
