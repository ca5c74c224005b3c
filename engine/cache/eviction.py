"""Eviction: free memory until the prefix cache fits into its byte budget. Engine thread only.

PrefixCache calls this module when a request has added state or is about to add state. A policy
(ranking.py by default) chooses the victims. This module removes each victim from the tree or from
the parked caches, and reports the changed nodes to the policy.

Counting all held bytes visits every node. Therefore each count records the free room in the budget.
All bytes are counted again only when requests have added more bytes than this room.

If the model is divided into stages, each stage has a budget of its own. The stage with the least
free room decides. The sizes of victims count the bytes of all stages, so evicting continues until
every stage has room.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

# Each eviction frees 1 / _SLACK_SHARE of the budget more than is needed.
_SLACK_SHARE = 64


class Eviction:
    """Eviction that enforces two limits of a prefix cache: total bytes and parked caches."""

    def __init__(
        self,
        holdings: Holdings,
        lending: Lending,
        *,
        budget_bytes: int,
        max_hot: int,
        policy: Policy,
        far_budgets: Sequence[int] = (),
    ) -> None:
        self._holdings = holdings
        self._lending = lending
        self._max_hot = max_hot
        self._policy = policy
        self.budget_bytes = budget_bytes
        self._far_budgets = far_budgets  # budgets of the other stages, rank 1 first
        # Called with a node before its logits, its snapshot or the whole node are evicted to make
        # room. It must not raise.
        self.save: Callable[[KvNode], None] | None = None
        self._room = 0  # number of bytes that may be added before all held bytes are counted again

    def keep_to_limits(self) -> None:
        """Evict the least recently used parked caches beyond max_hot, then keep to the budget."""
        parked = self._holdings.parked
        while len(parked) > self._max_hot:
            self.evict_parked(min(parked.values(), key=lambda hot: hot.last_used))
        self.note_added(0)

    def note_added(self, num_bytes: int, *, to_come: int = 0) -> None:
        """Account for bytes that a request adds. Evict if they do not fit into the budget.

        Args:
            num_bytes: number of bytes that the request has already added.
            to_come: number of bytes that the request is about to add.
        """
        self._room -= num_bytes + to_come
        if self._room < 0:
            self.keep_to_budget(to_come)

    def keep_to_budget(self, to_come: int = 0) -> None:
        """Count all held bytes. Evict until at least to_come bytes of the budget are free."""
        room, missing = self._find_room(to_come)
        if room < 0:
            # Free more than is needed, so that _free is called less often. Each call ranks the
            # whole tree, and ranking a large tree takes longer than evicting part of it.
            freed = self._free(self.total_budget // _SLACK_SHARE + missing)
            room += freed
            while self._far_budgets and freed:
                # The victims' bytes lie on all stages, and in other shares than estimated.
                room, missing = self._find_room(to_come)
                freed = self._free(missing) if room < 0 else 0
        self._room = room

    @property
    def total_budget(self) -> int:
        """Highest number of bytes of all stages together."""
        return self.budget_bytes + sum(self._far_budgets)

    @property
    def max_held(self) -> int:
        """Highest number of tokens whose K/V and one snapshot fit into the budget of each stage."""
        layout = self._holdings.layout
        return min(
            stage.max_tokens(budget)
            for stage, budget in zip(layout.stages or (layout,), self._budgets, strict=True)
        )

    def is_within(self) -> bool:
        """Return True if no stage holds more bytes than its budget."""
        rows = self._holdings.ledger().rows(self._holdings.layout)
        return all(held <= budget for held, budget in zip(rows, self._budgets, strict=True))

    @property
    def _budgets(self) -> tuple[int, ...]:
        return self.budget_bytes, *self._far_budgets

    def _find_room(self, to_come: int) -> tuple[int, int]:
        """Return the least free room of a stage, and how many bytes to evict for it.

        The first number is negative if a stage lacks room. The second one counts the bytes of all
        stages: evicting frees only a part of them on the stage that lacks room.

        to_come: bytes of K/V that will be added to all stages together, besides the first buffers
            of running requests.
        """
        ledger, layout = self._holdings.ledger(), self._holdings.layout
        to_come += sum(
            lease.first_buffers for lease in self._holdings.leases if not lease.hot.nbytes
        )
        rows = ledger.rows(layout, kv_less=self._held_twice() - to_come)
        rooms = [budget - held for held, budget in zip(rows, self._budgets, strict=True)]
        room = min(rooms)
        held = max(1, rows[rooms.index(room)])
        return room, max(0, -room) * sum(rows) // held

    def _free(self, num_bytes: int) -> int:
        """Evict until num_bytes are freed or nothing is left. Return the number of bytes freed."""
        freed = 0
        order = self._policy(self._holdings)
        while freed < num_bytes and (victim := order.next_victim()) is not None:
            freed += self._evict_next(order, victim)
        for lease in self._holdings.leases:
            # The policy has no victim left. Drop unpublished snapshots of the running requests.
            while freed < num_bytes and (point := least_valuable(lease.snapshots)) is not None:
                lease.snapshots.remove(point)
                self._holdings.counters.evictions += 1
                freed += point.nbytes
        return freed

    def _evict_next(self, order: EvictionOrder, victim: Victim) -> int:
        # Do not inline this into the caller's loop. In the loop, `evicted` would keep the evicted
        # arrays in memory while the next victim is copied.
        if self.save is not None and not isinstance(victim, EvictHot):
            self.save(victim.node)
        evicted = self.evict(victim)
        order.update(evicted)
        self._holdings.counters.evictions += 1
        return evicted.num_bytes

    def is_exhausted(self) -> bool:
        """Return True if the policy finds nothing left to evict."""
        return self._policy(self._holdings).next_victim() is None

    def evict(self, victim: Victim) -> Evicted:
        """Evict a victim. Return the number of bytes freed and the nodes removed or changed."""
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
        """Evict a parked cache. Nodes that are still useful get a copy of their K/V.

        Returns:
            The removed nodes, leaves first, and the kept nodes, parents first.
        """
        # Copy first: if the copy fails, the cache is still parked and valid.
        moved = self._lending.copy_out(hot, 0)
        del self._holdings.parked[hot.conversation_id]
        return moved

    def evict_hot(self) -> None:
        """Evict all parked caches. Nodes that are still useful get a copy of their K/V."""
        for hot in list(self._holdings.parked.values()):
            self.evict_parked(hot)

    def evict_snapshots(self) -> None:
        """Evict all snapshots of unlocked nodes, then the leaves that are useless without them."""
        for node in self._holdings.tree.nodes():
            if node.lock_count == 0:
                node.snapshot = None
        for node in reversed(list(self._holdings.tree.nodes())):
            if self._holdings.is_useless_leaf(node):
                self._holdings.tree.remove(node)

    def evict_all(self) -> None:
        """Evict all parked caches and all nodes, except nodes that a running request has locked.

        If a locked node lies in a parked cache, its K/V is copied before the cache is evicted.
        """
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
        """Remove the nodes that only this conversation uses, except nodes that a request uses."""
        for node in reversed(list(self._holdings.tree.nodes())):
            node.users.discard(conversation_id)
            self._remove_if_unused(node)

    def remove_unused(self, unlocked: KvNode | None) -> None:
        """Remove a node and its ancestors, up to the first node that is still in use.

        Called when a request has unlocked the node. If the request's conversation was forgotten
        while the request ran, nothing uses the node any more.
        """
        for node in ancestry(unlocked):
            # A user of a node also uses its ancestors. Therefore stop at the first node in use.
            if not (node.is_removed or self._remove_if_unused(node)):
                return

    def _held_twice(self) -> int:
        """Return the number of K/V bytes that are in memory twice.

        Each running request has copied K/V from tree nodes into its caches. When the first request
        that uses a node ends, the node will reference its caches, and the node's arrays will be
        freed.
        """
        copied = {
            node
            for lease in self._holdings.leases
            for node in ancestry(lease.locked)
            if node.end <= lease.restored and not node.is_removed
        }
        return sum(node.span.nbytes for node in copied)

    def _drop_logits(self, node: KvNode) -> int:
        assert node.snapshot is not None
        freed = node.snapshot.nbytes
        node.snapshot = replace(node.snapshot, logits=None) if node.snapshot.has_state else None
        return freed - (node.snapshot.nbytes if node.snapshot else 0)

    def _drop_snapshot(self, node: KvNode) -> int:
        freed = node.snapshot.nbytes if node.snapshot else 0
        node.snapshot = None
        return freed

    def _remove(self, leaf: KvNode) -> list[KvNode]:
        """Remove a leaf that owns its K/V, and the ancestors that are useless without this leaf."""
        removed = self._holdings.removed_with(leaf)
        for node in removed:
            self._holdings.tree.remove(node)
        return removed

    def _remove_if_unused(self, node: KvNode) -> bool:
        is_unused = not (node.users or node.children or node.lock_count)
        if is_unused:
            self._holdings.tree.remove(node)
        return is_unused
