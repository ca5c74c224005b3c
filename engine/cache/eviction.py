"""Evict what a policy names until the budget holds, or everything of one kind. Engine thread only."""

from __future__ import annotations

from dataclasses import replace

from engine.cache.holdings import Holdings
from engine.cache.hot import HotCache, KvNode
from engine.cache.lending import Lending
from engine.cache.points import least_valuable
from engine.cache.policy import (
    Evicted,
    EvictHot,
    EvictionOrder,
    EvictLogits,
    EvictNode,
    EvictSnapshot,
    Policy,
    Victim,
)
from engine.cache.radix import ancestry
from engine.types import ConversationId

# Share of the budget that is freed beyond what is needed: a 64th.
_SLACK_SHARE = 64


class Eviction:
    """Keeps the holdings within a budget."""

    def __init__(
        self,
        holdings: Holdings,
        lending: Lending,
        *,
        budget_bytes: int,
        max_hot: int,
        policy: Policy,
    ) -> None:
        self._holdings = holdings
        self._lending = lending
        self._max_hot = max_hot
        self._policy = policy
        self.budget_bytes = budget_bytes
        self._room = 0  # bytes that may be added before all are counted again

    def keep_to_limits(self) -> None:
        """Keep to the number of parked caches and to the budget."""
        parked = self._holdings.parked
        while len(parked) > self._max_hot:
            self.evict_parked(min(parked.values(), key=lambda hot: hot.last_used))
        self.make_room(0)

    def make_room(self, num_bytes: int, *, to_come: int = 0) -> None:
        """Account for bytes that a request has added, and for those that it will add next."""
        self._room -= num_bytes + to_come
        if self._room < 0:
            self.keep_to_budget(to_come)

    def keep_to_budget(self, to_come: int = 0) -> None:
        """Evict until the budget holds what is held and the bytes to come."""
        held = self._holdings.ledger().total_bytes - self._held_twice()
        room = self.budget_bytes - held - to_come
        if room < 0:
            # Free some slack: to rank a large tree takes longer than to evict a part of it.
            room += self._free(self.budget_bytes // _SLACK_SHARE - room)
        self._room = room

    def _free(self, num_bytes: int) -> int:
        """Evict until num_bytes are freed or nothing is left. Returns the bytes freed."""
        freed = 0
        order = self._policy(self._holdings)
        while freed < num_bytes and (victim := order.next_victim()) is not None:
            freed += self._evict_next(order, victim)
        for lease in self._holdings.leases:
            # Only the snapshots of the running requests themselves are left.
            while freed < num_bytes and (point := least_valuable(lease.snapshots)) is not None:
                lease.snapshots.remove(point)
                self._holdings.counters.evictions += 1
                freed += point.nbytes
        return freed

    def _evict_next(self, order: EvictionOrder, victim: Victim) -> int:
        # Keep this a function: in a loop the last report would hold the evicted arrays during the next copy.
        evicted = self.evict(victim)
        order.update(evicted)
        self._holdings.counters.evictions += 1
        return evicted.num_bytes

    def is_exhausted(self) -> bool:
        """Return whether nothing is left to evict."""
        return self._policy(self._holdings).next_victim() is None

    def evict(self, victim: Victim) -> Evicted:
        """Evict a victim and report what this freed and changed."""
        match victim:
            case EvictHot(hot):
                removed, kept = self.evict_parked(hot)
                freed = hot.nbytes - sum(node.span.nbytes for node in kept)
                above = [node.parent for node in removed[-1:] if node.parent]
                return Evicted(victim, freed, removed, [*above, *kept])
            case EvictLogits(node):
                return Evicted(victim, self._drop_logits(node), [], [node])
            case EvictSnapshot(node):
                freed = self._drop_snapshot(node)
                removed = self._remove(node) if self._holdings.is_useless_leaf(node) else []
            case EvictNode(node):
                freed = self._drop_snapshot(node)
                removed = self._remove(node)
        freed += sum([gone.span.nbytes for gone in removed])
        top = removed[-1].parent if removed else node
        return Evicted(victim, freed, removed, [top] if top else [])

    def evict_parked(self, hot: HotCache) -> tuple[list[KvNode], list[KvNode]]:
        """Evict a parked cache; its useful tokens stay in the tree.

        Returns:
            The removed and the kept nodes, as Lending.copy_out does.
        """
        # Copy first: if it fails, the cache is still parked.
        moved = self._lending.copy_out(hot, 0)
        del self._holdings.parked[hot.conversation_id]
        return moved

    def evict_hot(self) -> None:
        """Evict all parked caches; their tokens stay in the tree."""
        for hot in list(self._holdings.parked.values()):
            self.evict_parked(hot)

    def evict_snapshots(self) -> None:
        """Evict all snapshots that no request is using, and the nodes that are useless without them."""
        for node in self._holdings.tree.nodes():
            if node.lock_count == 0:
                node.snapshot = None
        for node in reversed(list(self._holdings.tree.nodes())):
            if self._holdings.is_useless_leaf(node):
                self._holdings.tree.remove(node)

    def evict_all(self) -> None:
        """Evict everything that no request is using."""
        for hot in list(self._holdings.parked.values()):
            if self._lending.is_in_use(hot):
                self.evict_parked(hot)
            else:
                del self._holdings.parked[hot.conversation_id]
                self._lending.withdraw(hot)
        for node in reversed(list(self._holdings.tree.nodes())):
            if not node.children and node.lock_count == 0:
                self._holdings.tree.remove(node)

    def forget(self, conversation_id: ConversationId) -> None:
        """Remove the nodes that only this conversation uses, except those that a request is using."""
        for node in reversed(list(self._holdings.tree.nodes())):
            node.users.discard(conversation_id)
            self._remove_if_unused(node)

    def remove_unused(self, unlocked: KvNode | None) -> None:
        """Remove what only forgotten conversations used, after a request has unlocked it."""
        for node in ancestry(unlocked):
            # The users of a node use those above it: the first node in use ends the search.
            if not (node.is_removed or self._remove_if_unused(node)):
                return

    def _held_twice(self) -> int:
        """Count the K/V that running requests copied out of the tree: lent to it when they end."""
        return sum(
            node.span.nbytes
            for lease in self._holdings.leases
            for node in ancestry(lease.locked)
            if node.end <= lease.restored and not node.is_removed
        )

    def _drop_logits(self, node: KvNode) -> int:
        assert node.snapshot is not None
        freed = node.snapshot.nbytes
        node.snapshot = replace(node.snapshot, logits=None) if node.snapshot.states else None
        return freed - (node.snapshot.nbytes if node.snapshot else 0)

    def _drop_snapshot(self, node: KvNode) -> int:
        freed = node.snapshot.nbytes if node.snapshot else 0
        node.snapshot = None
        return freed

    def _remove(self, leaf: KvNode) -> list[KvNode]:
        """Remove an owned leaf, and the nodes above that become useless with it."""
        removed = self._holdings.removed_with(leaf)
        for node in removed:
            self._holdings.tree.remove(node)
        return removed

    def _remove_if_unused(self, node: KvNode) -> bool:
        is_unused = not (node.users or node.children or node.lock_count)
        if is_unused:
            self._holdings.tree.remove(node)
        return is_unused
