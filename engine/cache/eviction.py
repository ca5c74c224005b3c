"""Giving up what is held: what a policy names until the budget holds, or all of a kind. Engine thread only."""

from __future__ import annotations

from dataclasses import replace

from engine.cache.budget import (
    DropLogits,
    DropNode,
    DropSnapshot,
    GiveUpHot,
    Holdings,
    Policy,
    Victim,
    least_point,
)
from engine.cache.held import Held
from engine.cache.hot import HotCache, KvNode
from engine.cache.kv import KvArrays
from engine.cache.layout import Layout
from engine.cache.lending import Lending
from engine.cache.radix import ancestry
from engine.types import ConversationId

# So much of the budget is left free when something has to be given up: a 64th.
_SLACK_SHARE = 64


class Eviction:
    """Keeps what is held within a budget."""

    def __init__(
        self,
        held: Held,
        lending: Lending,
        layout: Layout,
        *,
        budget_bytes: int,
        max_hot: int,
        policy: Policy,
    ) -> None:
        self._held = held
        self._lending = lending
        self._layout = layout
        self._max_hot = max_hot
        self._policy = policy
        self.budget_bytes = budget_bytes
        self._room = 0  # bytes that may come before all are counted again

    def keep_to_limits(self) -> None:
        """As many parked caches as may be, and the budget."""
        while len(self._held.parked) > self._max_hot:
            self.give_up(min(self._held.parked.values(), key=lambda hot: hot.last_used))
        self.add(0)

    def add(self, num_bytes: int, *, to_come: int = 0) -> None:
        """A request holds so many bytes more, and will hold those to come."""
        self._room -= num_bytes + to_come
        if self._room < 0:
            self.keep_to_budget(to_come)

    def keep_to_budget(self, to_come: int = 0) -> None:
        """Give up what matters least until the budget holds, and so many bytes that are to come."""
        room = self.budget_bytes + self._held_twice() - self._held.ledger().total_bytes - to_come
        if room < 0:
            # A little more than need be: to rank a large tree takes longer than to give up a part.
            room += self._free(self.budget_bytes // _SLACK_SHARE - room)
        self._room = room

    def _free(self, num_bytes: int) -> int:
        """Give up so many bytes if there are. Returns how many it were."""
        freed = 0
        for victim in self._policy(self.holdings()):
            freed += self.evict(victim)
            self._held.counters.evictions += 1
            if freed >= num_bytes:
                return freed
        for lease in self._held.leases:
            # All that is left are the points of the running request itself.
            while freed < num_bytes and (point := least_point(lease.snapshots)) is not None:
                lease.snapshots.remove(point)
                self._held.counters.evictions += 1
                freed += point.nbytes
        return freed

    def is_exhausted(self) -> bool:
        """Whether nothing is left to give up."""
        return next(self._policy(self.holdings()), None) is None

    def give_up(self, hot: HotCache) -> None:
        """A parked cache; its tokens that are of use stay in the tree."""
        # In this order: if the copy fails, nothing has changed hands.
        self._lending.copy_out(hot, 0)
        del self._held.parked[hot.conversation_id]

    def evict(self, victim: Victim) -> int:
        """Give up what a policy named. Returns the bytes that this freed."""
        match victim:
            case GiveUpHot(hot):
                freed, copied = hot.nbytes, self._held.counters.copied_bytes
                self.give_up(hot)
                for leaf in hot.leaves.kv:
                    # Who named the victim still holds on to it.
                    leaf.keys = leaf.values = None
                return freed - (self._held.counters.copied_bytes - copied)
            case DropLogits(node):
                return self._drop_logits(node)
            case DropSnapshot(node):
                return self._drop_snapshot(node) + self._prune(node)
            case DropNode(node):
                freed = self._drop_snapshot(node) + node.span.nbytes
                self._held.tree.remove(node)
                return freed + self._prune(node.parent)

    def evict_hot(self) -> None:
        """Give up all parked caches; their tokens stay in the tree."""
        for hot in list(self._held.parked.values()):
            self.give_up(hot)

    def evict_snapshots(self) -> None:
        """Give up all snapshots, and what is useless without them."""
        for node in self._held.tree.nodes():
            if node.lock_count == 0:
                node.snapshot = None
        self._prune_all()

    def evict_all(self) -> None:
        """Give up everything that no request is using."""
        for hot in list(self._held.parked.values()):
            if self._lending.lends_to_requests(hot):
                self.give_up(hot)
            else:
                del self._held.parked[hot.conversation_id]
                self._lending.withdraw(hot)
        for node in reversed(list(self._held.tree.nodes())):
            if not node.children and node.lock_count == 0:
                self._held.tree.remove(node)

    def forget(self, conversation_id: ConversationId) -> None:
        """Drop what only this conversation uses, but for what a request is using."""
        for node in reversed(list(self._held.tree.nodes())):
            node.users.discard(conversation_id)
            self._drop_if_unused(node)

    def drop_unused(self, unlocked: KvNode | None) -> None:
        """What only forgotten conversations used goes, now that no request is using it."""
        for node in ancestry(unlocked):
            # Who uses a node uses those above it: the first that is used ends the search.
            if not (node.is_removed or self._drop_if_unused(node)):
                return

    def holdings(self) -> Holdings:
        """What a policy decides on."""
        return Holdings(
            nodes=tuple(self._held.tree.nodes()),
            parked=tuple(self._held.parked.values()),
            pinned=self._held.pinned,
            needs_snapshot=self._held.needs_snapshot,
            kv_bytes_per_token=self._layout.kv_bytes_per_token,
            now=self._held.clock,
        )

    def _held_twice(self) -> int:
        """Bytes of K/V that running requests copied out of the tree: lent to it when they end."""
        return sum(
            node.span.nbytes
            for lease in self._held.leases
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

    def _drop_if_unused(self, node: KvNode) -> bool:
        is_unused = not (node.users or node.children or node.lock_count)
        if is_unused:
            self._held.tree.remove(node)
        return is_unused

    def _prune(self, node: KvNode | None) -> int:
        """Remove a leaf that is of no use any more, then what it was that led there."""
        freed = 0
        while node is not None and self._is_useless(node):
            freed += node.span.nbytes
            self._held.tree.remove(node)
            node = node.parent
        return freed

    def _prune_all(self) -> None:
        for node in reversed(list(self._held.tree.nodes())):
            if self._is_useless(node):
                self._held.tree.remove(node)

    def _is_useless(self, node: KvNode) -> bool:
        return self._held.is_dead_end(node) and isinstance(node.span, KvArrays)
