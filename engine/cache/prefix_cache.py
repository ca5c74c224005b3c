"""What the engine keeps of the tokens it has processed, and how a prompt gets it back.

One radix tree of K/V spans and snapshots, and the hot caches in which the newest spans lie. Owned
by the engine thread. What to give up when bytes run short is budget.py's.

Life of a request's tokens [0, n):
    [0, restored)   K/V in the hot cache, state from a snapshot    after acquire
    [restored, m)   fed; the hot cache's alone                     commit by the runner
    [0, m)          nodes of the tree, lent by the hot cache       after publish
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import mlx.core as mx

from engine.cache import kv
from engine.cache.budget import DropNode, DropSnapshot, GiveUpHot, Ledger, Victim, next_victim
from engine.cache.hot import HotCache, KvSpan, LentSpan
from engine.cache.kv import KvArrays
from engine.cache.layout import Layout
from engine.cache.radix import Node, RadixTree, Step, ancestry, common_prefix_len
from engine.cache.snapshot import Snapshot, capture
from engine.chat.prompt import PointKind
from engine.types import CacheStatistics, ConversationId

KvNode = Node[KvSpan, Snapshot]
Path = list[Step[KvSpan, Snapshot]]


@dataclass(frozen=True, slots=True)
class Match:
    """How much of a prompt is known, and the deepest point from which it can go on.

    matched counts tokens whose K/V is there; restored <= matched tokens can be used.
    """

    matched: int
    restored: int
    node: KvNode | None
    snapshot: Snapshot | None


@dataclass(slots=True, eq=False)
class Lease:
    """Live caches on loan to one request, holding `restored` tokens of its prompt at first."""

    hot: HotCache
    restored: int
    matched: int
    logits: mx.array | None  # of the prompt's last token, when all of it was restored
    side: bool
    locked: KvNode | None
    snapshots: list[Snapshot] = field(default_factory=list[Snapshot])


@dataclass(slots=True)
class Counters:
    """What happened since the model was loaded."""

    matches: int = 0
    evictions: int = 0
    restore_faults: int = 0
    copied_bytes: int = 0


class PrefixCache:
    """Acquire live caches for a prompt, feed them, publish them. See the module's interval table."""

    def __init__(
        self,
        layout: Layout,
        *,
        budget_bytes: int,
        max_hot: int,
    ) -> None:
        self._layout = layout
        self._budget_bytes = budget_bytes
        self._max_hot = max_hot
        self._tree: RadixTree[KvSpan, Snapshot] = RadixTree()
        self._parked: dict[ConversationId, HotCache] = {}
        self._leases: list[Lease] = []
        self._clock = 0
        self.counters = Counters()

    def acquire(
        self,
        conversation_id: ConversationId,
        prompt_ids: Sequence[int],
        new_caches: Callable[[], list[object]],
        *,
        room: int,
        side: bool,
    ) -> Lease:
        """Live caches that hold as much of prompt_ids as can be restored.

        Args:
            conversation_id: whose caches these are.
            prompt_ids: the prompt.
            new_caches: makes empty ones, for a conversation that has none.
            room: tokens that the caches should hold without growing.
            side: leave no trace: caches of its own, nothing published.
        """
        while True:
            match = self._match(prompt_ids)
            lease = self._lease(conversation_id, match, new_caches, side=side)
            try:
                self._restore(lease, prompt_ids, match, room)
            except BaseException:
                self.abandon(lease)
                raise
            if lease.hot.is_restored(match.restored, match.snapshot):
                break
            # A stored point that is not what it says: drop it, restore from the one before.
            self.counters.restore_faults += 1
            self.abandon(lease)
            assert match.node is not None
            self._tree.remove_subtree(match.node)
        self.counters.matches += match.restored > 0
        return lease

    def capture(self, lease: Lease, kind: PointKind, logits: mx.array | None = None) -> Snapshot:
        """Keep the state at the tokens committed so far; kept for good once published."""
        snapshot = capture(lease.hot.leaves.aux, lease.hot.n_tokens, kind, logits)
        lease.snapshots.append(snapshot)
        return snapshot

    def reserve(self, lease: Lease, n_tokens: int) -> None:
        """Make room for n_tokens, so that no later step copies the buffers."""
        self.counters.copied_bytes += kv.reserve(lease.hot.leaves.kv, n_tokens)

    def publish(self, lease: Lease) -> None:
        """Share what the lease's caches hold, park them, keep to the budget."""
        hot = lease.hot
        assert not lease.side
        self._end_lease(lease)
        if not hot.token_ids or not hot.is_consistent():
            self._forget_lender(hot)
            return
        self._insert(hot, lease.snapshots)
        hot.set_state(None)
        hot.last_used = self._tick()
        self._parked[hot.conversation_id] = hot
        self._enforce()

    def abandon(self, lease: Lease) -> None:
        """Drop the lease's caches: what other nodes borrowed from them and nobody else has goes too.

        Also the way out of a publish that failed half-way.
        """
        self._end_lease(lease)
        if self._parked.get(lease.hot.conversation_id) is lease.hot:
            del self._parked[lease.hot.conversation_id]
        self._forget_lender(lease.hot)

    def forget(self, conversation_id: ConversationId) -> None:
        """Drop what only this conversation uses."""
        for node in reversed(list(self._tree.nodes())):
            node.users.discard(conversation_id)
            if not node.users and not node.children and node.lock_count == 0:
                self._tree.remove(node)
        hot = self._parked.pop(conversation_id, None)
        if hot is not None:
            self._materialise(hot, 0)

    def evict_hot(self) -> None:
        """Give up all parked caches; their tokens stay in the tree."""
        for hot in list(self._parked.values()):
            self._give_up(hot)

    def evict_snapshots(self) -> None:
        """Give up all snapshots, and what is useless without them."""
        for node in self._tree.nodes():
            if node.lock_count == 0:
                node.snapshot = None
        self._prune_all()

    def evict_all(self) -> None:
        """Give up everything that no request is using."""
        for hot in list(self._parked.values()):
            del self._parked[hot.conversation_id]
            self._forget_lender(hot)
        for node in reversed(list(self._tree.nodes())):
            if not node.children and node.lock_count == 0:
                self._tree.remove(node)

    def ledger(self) -> Ledger:
        """Bytes held, counted anew: there is no running total that could drift."""
        hot = [*self._parked.values(), *(lease.hot for lease in self._leases)]
        nodes = list(self._tree.nodes())
        pending = [snapshot for lease in self._leases for snapshot in lease.snapshots]
        return Ledger(
            kv_bytes=sum(node.span.nbytes for node in nodes),
            snapshot_bytes=sum(node.snapshot.nbytes for node in nodes if node.snapshot)
            + sum(snapshot.nbytes for snapshot in pending),
            hot_bytes=sum(cache.nbytes for cache in hot),
        )

    def statistics(self) -> CacheStatistics:
        ledger = self.ledger()
        nodes = list(self._tree.nodes())
        return CacheStatistics(
            kv_bytes=ledger.kv_bytes,
            snapshot_bytes=ledger.snapshot_bytes,
            hot_bytes=ledger.hot_bytes,
            total_bytes=ledger.total_bytes,
            budget_bytes=self._budget_bytes,
            num_nodes=len(nodes),
            num_snapshots=sum(node.snapshot is not None for node in nodes),
            num_hot=len(self._parked),
            matches=self.counters.matches,
            evictions=self.counters.evictions,
            restore_faults=self.counters.restore_faults,
            copied_bytes=self.counters.copied_bytes,
        )

    def nodes(self) -> Iterator[KvNode]:
        """All nodes of the tree, parents before children."""
        return self._tree.nodes()

    def parked(self, conversation_id: ConversationId) -> HotCache | None:
        """A conversation's live caches while no request uses them."""
        return self._parked.get(conversation_id)

    def check_invariants(self) -> None:
        """Assert what must hold between two steps of the engine."""
        self._tree.check_invariants()
        known = {id(hot) for hot in self._parked.values()}
        known |= {id(lease.hot) for lease in self._leases}
        for node in self._tree.nodes():
            if node.snapshot is not None:
                assert node.snapshot.n_tokens == node.end
            if isinstance(node.span, LentSpan):
                assert id(node.span.hot) in known
                lent = node.span.hot.token_ids[node.span.start : node.span.end]
                assert (node.start, node.end) == (node.span.start, node.span.end)
                assert tuple(lent) == node.token_ids
        for conversation_id, hot in self._parked.items():
            assert hot.conversation_id == conversation_id
            assert hot.is_consistent()
        if not self._leases:
            assert all(node.lock_count == 0 for node in self._tree.nodes())
            within = self.ledger().total_bytes <= self._budget_bytes
            assert within or next_victim(self._tree.nodes(), self._parked.values()) is None

    # Matching and restoring

    def _match(self, prompt_ids: Sequence[int]) -> Match:
        path = self._tree.match(prompt_ids)
        matched = sum(step.n_matched for step in path)
        last = path[-1].node if path else None
        if last is not None and matched == len(prompt_ids) == last.end:
            snapshot = last.snapshot
            if snapshot is not None and snapshot.logits is not None:
                return Match(matched, matched, last, snapshot)
        # At least one token is fed: its logits begin the reply.
        limit = min(matched, len(prompt_ids) - 1)
        if not self._layout.needs_snapshot:
            return Match(matched, limit, last, None)
        for step in reversed(path):
            if step.is_whole and step.node.end <= limit and step.node.snapshot is not None:
                return Match(matched, step.node.end, step.node, step.node.snapshot)
        return Match(matched, 0, None, None)

    def _lease(
        self,
        conversation_id: ConversationId,
        match: Match,
        new_caches: Callable[[], list[object]],
        *,
        side: bool,
    ) -> Lease:
        hot = None if side else self._parked.pop(conversation_id, None)
        if hot is None:
            hot = HotCache(conversation_id, new_caches())
        lease = Lease(
            hot=hot,
            restored=match.restored,
            matched=match.matched,
            logits=None,
            side=side,
            locked=match.node,
        )
        self._tree.lock(match.node)
        self._leases.append(lease)
        return lease

    def _restore(self, lease: Lease, prompt_ids: Sequence[int], match: Match, room: int) -> None:
        hot = lease.hot
        kept = min(common_prefix_len(hot.token_ids, prompt_ids), match.restored)
        self._materialise(hot, kept)
        hot.cut(kept)
        self._fill(hot, prompt_ids, match.restored, room)
        hot.set_state(match.snapshot)
        if match.snapshot is not None and match.restored == len(prompt_ids):
            lease.logits = match.snapshot.logits
        if not lease.side:
            tick = self._tick()
            for node in ancestry(match.node):
                node.last_used = tick

    def _fill(self, hot: HotCache, prompt_ids: Sequence[int], n_tokens: int, room: int) -> None:
        """Copy the tree's K/V of [hot.n_tokens, n_tokens) behind what hot holds."""
        start = hot.n_tokens
        if start == n_tokens:
            return
        parts: list[tuple[object, ...]] = []
        for step in self._tree.match(prompt_ids[:n_tokens]):
            node = step.node
            first, end = max(start, node.start), node.start + step.n_matched
            if first < end:
                parts.append(node.span.range(first - node.start, end - node.start))
        self.counters.copied_bytes += kv.append(hot.leaves.kv, parts, n_tokens, room)
        hot.commit(prompt_ids[start:n_tokens])

    # Publishing

    def _insert(self, hot: HotCache, snapshots: Sequence[Snapshot]) -> None:
        path = self._tree.match(hot.token_ids)
        matched = sum(step.n_matched for step in path)
        parent = self._tree.node_ending_at(path, matched)
        if matched < hot.n_tokens:
            rest = hot.token_ids[matched:]
            self._tree.append(parent, rest, LentSpan(hot, matched, hot.n_tokens))
        for snapshot in snapshots:
            if self._layout.needs_snapshot or snapshot.logits is not None:
                path = self._tree.match(hot.token_ids)
                node = self._tree.node_ending_at(path, snapshot.n_tokens)
                assert node is not None
                self._attach(node, snapshot)
        tick = self._tick()
        for step in self._tree.match(hot.token_ids):
            node = step.node
            node.last_used = tick
            node.users.add(hot.conversation_id)
            # Tokens that this cache holds too need no arrays of their own.
            if step.is_whole and isinstance(node.span, KvArrays):
                node.span = LentSpan(hot, node.start, node.end)

    def _attach(self, node: KvNode, snapshot: Snapshot) -> None:
        assert node.end == snapshot.n_tokens
        known = node.snapshot
        if known is None or (known.logits is None and snapshot.logits is not None):
            node.snapshot = snapshot
        elif known.kind in (PointKind.STRIDE, PointKind.BRANCH):
            known.kind = snapshot.kind

    def _prune_all(self) -> None:
        for node in reversed(list(self._tree.nodes())):
            if self._is_useless(node):
                self._tree.remove(node)

    def _is_useless(self, node: KvNode) -> bool:
        return self._is_dead_end(node) and isinstance(node.span, KvArrays)

    def _is_dead_end(self, node: KvNode) -> bool:
        """Whether nothing can be restored from a node or below it."""
        return (
            self._layout.needs_snapshot
            and node.snapshot is None
            and not node.children
            and node.lock_count == 0
        )

    # Lending

    def _materialise(self, hot: HotCache, n_tokens: int) -> None:
        """Copy out what nodes borrow from hot beyond n_tokens, before it is overwritten."""
        if n_tokens == hot.n_tokens:
            return
        path = self._tree.match(hot.token_ids)
        if n_tokens > 0:
            self._tree.node_ending_at(path, n_tokens)
            path = self._tree.match(hot.token_ids)
        for step in reversed(path):
            node = step.node
            span = node.span
            if not isinstance(span, LentSpan) or span.hot is not hot or node.end <= n_tokens:
                continue
            if self._is_dead_end(node):
                self._tree.remove(node)
            elif (elsewhere := self._lent_elsewhere(node, hot)) is not None:
                node.span = elsewhere
            else:
                node.span = span.copied()
                self.counters.copied_bytes += node.span.nbytes

    def _give_up(self, hot: HotCache) -> None:
        del self._parked[hot.conversation_id]
        self._materialise(hot, 0)

    def _forget_lender(self, hot: HotCache) -> None:
        """Remove the nodes that borrow from hot, with all below them, unless another cache has them."""
        for step in self._tree.match(hot.token_ids):
            node = step.node
            if isinstance(node.span, LentSpan) and node.span.hot is hot:
                elsewhere = self._lent_elsewhere(node, hot)
                if elsewhere is None:
                    self._tree.remove_subtree(node)
                    return
                node.span = elsewhere

    def _lent_elsewhere(self, node: KvNode, hot: HotCache) -> LentSpan | None:
        """The same tokens in another parked cache."""
        path = hot.token_ids[: node.end]
        for other in self._parked.values():
            if other is not hot and common_prefix_len(path, other.token_ids) == node.end:
                return LentSpan(other, node.start, node.end)
        return None

    # Leases and budget

    def _end_lease(self, lease: Lease) -> None:
        """Idempotent."""
        if lease in self._leases:
            self._leases.remove(lease)
            self._tree.unlock(lease.locked)

    def _enforce(self) -> None:
        """Give up what matters least until the budget holds."""
        while len(self._parked) > self._max_hot:
            self._give_up(min(self._parked.values(), key=lambda hot: hot.last_used))
        while self.ledger().total_bytes > self._budget_bytes:
            victim = next_victim(self._tree.nodes(), self._parked.values())
            if victim is None:
                break
            self._evict(victim)
            self.counters.evictions += 1

    def _evict(self, victim: Victim) -> None:
        match victim:
            case GiveUpHot(hot):
                self._give_up(hot)
            case DropNode(node):
                self._tree.remove(node)
            case DropSnapshot(node):
                node.snapshot = None
                if self._is_useless(node):
                    self._tree.remove(node)

    def _tick(self) -> int:
        self._clock += 1
        return self._clock
