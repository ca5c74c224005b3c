"""What a prefix cache holds: one value that its parts change together. Engine thread only."""

from __future__ import annotations

from dataclasses import dataclass, field

import mlx.core as mx

from engine.cache.budget import Ledger
from engine.cache.hot import HotCache, KvNode, KvTree, is_point
from engine.cache.radix import RadixTree
from engine.cache.snapshot import Snapshot
from engine.types import CacheStatistics, ConversationId


@dataclass(slots=True, eq=False)
class Lease:
    """Live caches on loan to one request, holding `restored` tokens of its prompt at first."""

    hot: HotCache
    restored: int
    matched: int
    logits: mx.array | None  # of the prompt's last token, when all of it was restored
    side: bool
    locked: KvNode | None
    faulted: int  # up to there a stored point was not what it said
    snapshots: list[Snapshot] = field(default_factory=list[Snapshot])
    reserved: int = 0  # tokens that its buffers were made large enough for


@dataclass(slots=True)
class Counters:
    """What happened since the model was loaded."""

    matches: int = 0
    evictions: int = 0
    restore_faults: int = 0
    copied_bytes: int = 0
    audits: int = 0
    audit_faults: int = 0


@dataclass(slots=True, eq=False)
class Held:
    """The tree, and the live caches that its nodes may borrow from."""

    needs_snapshot: bool  # K/V alone cannot bring the model back
    tree: KvTree = field(default_factory=RadixTree)
    parked: dict[ConversationId, HotCache] = field(default_factory=dict[ConversationId, HotCache])
    leases: list[Lease] = field(default_factory=list[Lease])
    pinned: set[ConversationId] = field(default_factory=set[ConversationId])
    clock: int = 0  # conversations' turns published
    counters: Counters = field(default_factory=Counters)

    def ledger(self) -> Ledger:
        """Bytes held, counted anew: there is no running total that could drift."""
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
        """What the app shows of it."""
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

    def is_point(self, node: KvNode) -> bool:
        """Whether a request could go on from a node's end."""
        return is_point(node, needs_snapshot=self.needs_snapshot)

    def is_dead_end(self, node: KvNode) -> bool:
        """Whether nothing can be restored from a node or below it, and no request is using it."""
        return not (self.is_point(node) or node.children or node.lock_count)
