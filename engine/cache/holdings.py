"""The data of a prefix cache, shared by its modules, and the rules for useful nodes.

Engine thread only.
"""

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
    """Bytes held by the prefix cache. A lent span counts as a part of its hot cache."""

    kv_bytes: int  # K/V arrays that nodes own
    snapshot_bytes: int  # snapshots of nodes and of leases
    hot_bytes: int  # K/V buffers of parked and leased caches, including unused capacity

    @property
    def total_bytes(self) -> int:
        return self.kv_bytes + self.snapshot_bytes + self.hot_bytes


@dataclass(slots=True, eq=False)
class Lease:
    """Live caches in use by one request. At first they hold `restored` tokens of its prompt."""

    hot: HotCache
    restored: int
    matched: int  # leading tokens of the prompt whose K/V was stored
    logits: mx.array | None  # (V,) after the prompt, None unless the whole prompt was restored
    side: bool  # True for a side request: nothing is published or evicted for it
    locked: KvNode | None  # the deepest node restored from, locked until the lease ends
    faulted: int  # leading tokens up to the deepest stored state that was found wrong, else 0
    snapshots: list[Snapshot] = field(default_factory=list[Snapshot])  # captured, not published yet
    reserved: int = 0  # number of tokens that the K/V buffers can hold without growing


@dataclass(slots=True)
class Counters:
    """Numbers of events since the prefix cache was created."""

    matches: int = 0  # requests that restored at least one token
    evictions: int = 0
    restore_faults: int = 0  # stored caches or nodes that did not hold their tokens
    copied_bytes: int = 0  # K/V copied into, out of or between buffers
    audits: int = 0
    audit_faults: int = 0  # audits that found wrong stored state


@dataclass(slots=True, eq=False)
class Holdings:
    """The radix tree, the live caches that nodes reference, and the rules for useful nodes."""

    needs_snapshot: bool  # True if K/V alone cannot restore the model's state
    kv_bytes_per_token: int
    tree: KvTree = field(default_factory=RadixTree)
    # Live caches that no request uses, at most one per conversation.
    parked: dict[ConversationId, HotCache] = field(default_factory=dict[ConversationId, HotCache])
    leases: list[Lease] = field(default_factory=list[Lease])  # of running requests and audits
    pinned: set[ConversationId] = field(default_factory=set[ConversationId])
    clock: int = 0  # number of turns published, the unit of last_used
    counters: Counters = field(default_factory=Counters)

    def add_lease(self, lease: Lease) -> None:
        """Register a lease, and lock the nodes that it was restored from."""
        self.tree.lock(lease.locked)
        self.leases.append(lease)

    def remove_lease(self, lease: Lease) -> None:
        """Unregister a lease, and unlock its nodes. Idempotent."""
        if lease in self.leases:
            self.leases.remove(lease)
            self.tree.unlock(lease.locked)

    def ledger(self) -> Ledger:
        """Count the bytes held, by a sum over all nodes: a running total could drift."""
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

    # Rules for useful nodes

    def is_resume_point(self, node: KvNode) -> bool:
        """Return True if a request can resume at the end of a node."""
        return node.snapshot is not None or not self.needs_snapshot

    def is_dead_end(self, node: KvNode, *, num_removed: int = 0) -> bool:
        """Return True if a node is unlocked, has no child, and no request can resume at its end.

        num_removed: number of children that are about to be removed; they do not count.
        """
        return not (
            self.is_resume_point(node) or len(node.children) > num_removed or node.lock_count
        )

    def is_useless_leaf(self, node: KvNode) -> bool:
        """Return True if a node is a dead end that owns its K/V. A lent span needs no memory."""
        return lender(node) is None and self.is_dead_end(node)

    def removed_with(self, leaf: KvNode) -> list[KvNode]:
        """Return a leaf and the ancestors that are dead ends without it, nearest first.

        An ancestor is included only if its K/V lies in the same place as that of the leaf: in the
        same hot cache, or in owned arrays if the leaf owns its arrays.
        """
        hot, removed, above = lender(leaf), [leaf], leaf.parent
        while above and self.is_dead_end(above, num_removed=1) and lender(above) is hot:
            removed.append(above)
            above = above.parent
        return removed

    def useful_nodes(self, lent: Sequence[KvNode]) -> Sequence[KvNode]:
        """Return the nodes to keep when their hot cache is cut or evicted: all but the dead ends.

        Args:
            lent: nodes that reference one hot cache, parents first, up to the last such node. They
                lie on one path, the path of the tokens in the hot cache.
        """
        if not lent or not self.is_dead_end(lent[-1]):
            return lent
        first = lent[0].start
        num_dead = sum(node.start >= first for node in self.removed_with(lent[-1]))
        return lent[:-num_dead]
