"""The shared data of a prefix cache, and the rules that decide which nodes are useful.

PrefixCache creates one Holdings. The modules of the cache share and change it: lending.py,
restoring.py, eviction.py and faults.py. Engine thread only.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import mlx.core as mx

from engine.cache.hot import HotCache, KvNode, KvTree, lender
from engine.cache.layout import Layout
from engine.cache.radix import RadixTree
from engine.cache.snapshot import Snapshot
from engine.cache_figures import CacheStatistics
from engine.types import ConversationId, num_chats


@dataclass(frozen=True, slots=True)
class Ledger:
    """Memory held by the prefix cache, in bytes of all stages together.

    If a node references K/V in a live cache, this K/V is counted in hot_bytes, not in kv_bytes.
    """

    kv_bytes: int  # bytes of the K/V arrays that nodes own
    snapshot_bytes: int  # bytes of the snapshots of nodes and of leases
    hot_bytes: int  # bytes of K/V buffers of parked and leased caches, including unused capacity
    # Bytes of snapshots in each stage but the first, rank 1 first. Empty on one machine.
    far_snapshot_bytes: tuple[int, ...] = ()

    @property
    def total_bytes(self) -> int:
        return self.kv_bytes + self.snapshot_bytes + self.hot_bytes

    def rows(self, layout: Layout, *, kv_less: int = 0) -> tuple[int, ...]:
        """Return the bytes of each stage, rank 0 first. On one machine this is the total.

        Args:
            layout: the layout of the model. K/V of the same tokens have the same share in all sums.
            kv_less: bytes of K/V of all stages to leave out.
        """
        kv_bytes = self.kv_bytes + self.hot_bytes - kv_less
        per_token = max(1, layout.kv_bytes_per_token)
        far = [
            kv_bytes * stage.kv_bytes_per_token // per_token + snapshots
            for stage, snapshots in zip(layout.stages[1:], self.far_snapshot_bytes, strict=True)
        ]
        return (self.total_bytes - kv_less - sum(far), *far)


@dataclass(slots=True, eq=False)
class Lease:
    """The live caches that one request or audit uses, from acquire to publish or abandon.

    When the lease begins, the caches hold the first `restored` tokens of the prompt.
    """

    hot: HotCache
    restored: int
    matched: int  # number of leading prompt tokens whose K/V was stored
    # Logits (V,) after the last prompt token; None unless the whole prompt was restored.
    logits: mx.array | None
    side: bool  # True for a side request or an audit: nothing is published or evicted for it
    locked: KvNode | None  # node that holds the last restored token; locked until the lease ends
    # Number of leading prompt tokens for which faulty stored state was found; 0 without a fault.
    faulted: int
    # True if feeding the prompt captures snapshots. False for side requests, except previews.
    has_points: bool
    # Snapshots captured for this lease and not yet added to the tree.
    snapshots: list[Snapshot] = field(default_factory=list[Snapshot])
    # Bytes of the K/V buffers that the first forward pass will allocate; 0 if there are buffers.
    first_buffers: int = 0
    reserved: int = 0  # number of tokens that the K/V buffers can hold without growing
    # Number of leading tokens that need not be fed again after a crash: `restored`, or more if
    # state was written to disk since.
    saved: int = 0
    saved_at: float = field(default_factory=time.monotonic)  # when `saved` got its value


@dataclass(slots=True)
class Counters:
    """Statistics counted since the prefix cache was created."""

    matches: int = 0  # number of requests that restored at least one token
    publications: int = 0  # number of times that tokens were added to the tree
    evictions: int = 0
    restore_faults: int = 0  # number of times that a live cache or a restored state was faulty
    copied_bytes: int = 0  # bytes of K/V copied between caches and nodes, or when a buffer grew
    audits: int = 0
    audit_faults: int = 0  # number of audits that found wrong stored state


@dataclass(slots=True, eq=False)
class Holdings:
    """The stored data of a prefix cache, and the rules that decide which nodes are useful."""

    layout: Layout
    tree: KvTree = field(default_factory=RadixTree)
    # Live caches that no request uses, at most one per conversation.
    parked: dict[ConversationId, HotCache] = field(default_factory=dict[ConversationId, HotCache])
    # Leases of running requests and audits.
    leases: list[Lease] = field(default_factory=list[Lease])
    pinned: set[ConversationId] = field(default_factory=set[ConversationId])
    clock: int = 0  # number of turns published so far; last_used fields store this number
    counters: Counters = field(default_factory=Counters)

    @property
    def needs_snapshot(self) -> bool:
        """True if K/V alone cannot restore the model's state."""
        return self.layout.needs_snapshot

    @property
    def kv_bytes_per_token(self) -> int:
        return self.layout.kv_bytes_per_token

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
        """Count the held bytes node by node. A running total could drift from the true sum."""
        kv_bytes = 0
        snapshots = [snapshot for lease in self.leases for snapshot in lease.snapshots]
        for node in self.tree.nodes():
            kv_bytes += node.span.nbytes
            if node.snapshot is not None:
                snapshots.append(node.snapshot)
        hot = [*self.parked.values(), *(lease.hot for lease in self.leases)]
        far = [0] * len(self.layout.stages[1:])
        for state in (state for snapshot in snapshots for state in snapshot.far):
            far = [held + added for held, added in zip(far, state.stage_bytes, strict=True)]
        return Ledger(
            kv_bytes=kv_bytes,
            snapshot_bytes=sum(snapshot.nbytes for snapshot in snapshots),
            hot_bytes=sum(cache.nbytes for cache in hot),
            far_snapshot_bytes=tuple(far),
        )

    def statistics(self, budget_bytes: int) -> CacheStatistics:
        ledger = self.ledger()
        nodes = list(self.tree.nodes())
        # A conversation that is read or answered for the first time has no node yet.
        in_use = {lease.hot.conversation_id for lease in self.leases if not lease.side}
        return CacheStatistics(
            kv_bytes=ledger.kv_bytes,
            snapshot_bytes=ledger.snapshot_bytes,
            hot_bytes=ledger.hot_bytes,
            total_bytes=ledger.total_bytes,
            budget_bytes=budget_bytes,
            num_conversations=num_chats(in_use.union(*(node.users for node in nodes))),
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

    # Rules that decide which nodes are useful

    def is_resume_point(self, node: KvNode) -> bool:
        """Return True if a request can resume at the end of a node."""
        return node.snapshot is not None or not self.needs_snapshot

    def is_dead_end(self, node: KvNode, *, num_removed: int = 0) -> bool:
        """Return True if a node is unlocked, has no child, and no request can resume at its end.

        num_removed: number of children to ignore, because they are about to be removed.
        """
        return not (
            self.is_resume_point(node) or len(node.children) > num_removed or node.lock_count
        )

    def is_useless_leaf(self, node: KvNode) -> bool:
        """Return True if a node is a dead end and owns its K/V. Removing it then frees memory."""
        return lender(node) is None and self.is_dead_end(node)

    def removed_with(self, leaf: KvNode) -> list[KvNode]:
        """Return a leaf and the ancestors to remove with it, from the leaf upwards.

        An ancestor is included if it becomes a dead end and its K/V lies in the same hot cache as
        the K/V of the leaf. If the leaf owns its arrays, the ancestor must own its arrays too. The
        list ends before the first ancestor that does not fulfil these conditions.
        """
        hot, removed, above = lender(leaf), [leaf], leaf.parent
        while above and self.is_dead_end(above, num_removed=1) and lender(above) is hot:
            removed.append(above)
            above = above.parent
        return removed

    def useful_nodes(self, lent: Sequence[KvNode]) -> Sequence[KvNode]:
        """Return the nodes to keep when a hot cache is cut or evicted: all except the dead ends.

        Args:
            lent: the nodes whose K/V lies in the part of the hot cache to remove, parents first.
                They lie on one path, and the last one is the deepest node of the hot cache.
        """
        if not lent or not self.is_dead_end(lent[-1]):
            return lent
        first = lent[0].start
        num_dead = sum(node.start >= first for node in self.removed_with(lent[-1]))
        return lent[:-num_dead]
