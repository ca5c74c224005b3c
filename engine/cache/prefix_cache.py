"""What the engine keeps of the tokens it has processed, and how a prompt gets it back.

One radix tree of K/V spans and snapshots, and the hot caches in which the newest spans lie. Owned
by the engine thread. held.py has the values; lending.py, eviction.py and this change them.

Life of a request's tokens [0, n):
    [0, restored)   K/V in the hot cache, state from a snapshot    after acquire
    [restored, m)   fed; the hot cache's alone                     commit by the runner
    [0, m)          nodes of the tree, lent by the hot cache       after publish
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence

import mlx.core as mx

from engine.cache import kv
from engine.cache.budget import (
    Holdings,
    Ledger,
    Policy,
    Victim,
)
from engine.cache.coverage import coverage_aware
from engine.cache.eviction import Eviction
from engine.cache.held import Counters, Held, Lease
from engine.cache.hot import HotCache, KvNode, LentSpan
from engine.cache.layout import Layout
from engine.cache.lending import Lending, borrows
from engine.cache.matching import Match, deepest_match
from engine.cache.radix import (
    TokenRun,
    ancestry,
    common_end,
    path_run,
)
from engine.cache.snapshot import Snapshot, capture
from engine.cache.trees import evaluate
from engine.chat.prompt import PointKind
from engine.sequences import common_prefix_len
from engine.types import CacheStatistics, ConversationId

log = logging.getLogger(__name__)

# Stands for whatever comes after known tokens: no model has it.
_ANOTHER_TOKEN = -1


class PrefixCache:
    """Acquire live caches for a prompt, feed them, publish them. See the module's interval table."""

    def __init__(
        self,
        layout: Layout,
        *,
        budget_bytes: int,
        max_hot: int,
        policy: Policy = coverage_aware,
        on_fault: Callable[[Sequence[int], int], None] | None = None,
    ) -> None:
        """on_fault is told of stored tokens that were wrong and how many of them are still there."""
        self._layout = layout
        self._on_fault = on_fault
        self._held = Held(layout.needs_snapshot)
        self._lending = Lending(self._held)
        self._eviction = Eviction(
            self._held,
            self._lending,
            layout,
            budget_bytes=budget_bytes,
            max_hot=max_hot,
            policy=policy,
        )

    @property
    def counters(self) -> Counters:
        return self._held.counters

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
        faulted = self._withdraw_inconsistent(conversation_id, prompt_ids)
        while True:
            match = self._match(conversation_id, prompt_ids)
            # While the caches are still parked: if the copy fails, nothing has changed hands.
            kept = 0 if side else self._make_way(conversation_id, match)
            lease = self._lease(conversation_id, match, new_caches, side=side, faulted=faulted)
            try:
                self._restore(lease, kept, prompt_ids, match, room)
                if not side:
                    self._eviction.keep_to_budget(to_come=self._first_buffers(lease.hot, room))
            except BaseException:
                self.abandon(lease)
                raise
            if lease.hot.is_restored(match.restored, match.snapshot):
                self._held.counters.matches += match.restored > 0
                return lease
            # A stored point that is not what it says: restore from the one before.
            faulted = max(faulted, match.restored)
            self._quarantine(lease)

    def capture(self, lease: Lease, kind: PointKind, logits: mx.array | None = None) -> Snapshot:
        """Keep the state at the tokens committed so far; kept for good once published."""
        snapshot = capture(lease.hot.leaves.aux, lease.hot.num_tokens, kind, logits)
        lease.snapshots.append(snapshot)
        if not lease.side:
            self._eviction.add(snapshot.nbytes)
        return snapshot

    def reserve(self, lease: Lease, num_tokens: int) -> None:
        """Make room for num_tokens, so that no later step copies the buffers."""
        if num_tokens <= lease.reserved:
            return
        leaves = lease.hot.leaves.kv
        growth = kv.growth(leaves, num_tokens)
        if growth and not lease.side:
            self._eviction.add(0, to_come=growth)
        self._held.counters.copied_bytes += kv.reserve(leaves, num_tokens)
        if lease.hot.token_ids:
            lease.reserved = num_tokens

    def cut_back(self, lease: Lease, num_tokens: int) -> None:
        """Take back what was fed after num_tokens and failed.

        Raises:
            RuntimeError: what was fed before is lost too.
        """
        lease.hot.cut(num_tokens)
        lease.snapshots[:] = [point for point in lease.snapshots if point.num_tokens <= num_tokens]
        evaluate(lease.hot.leaves.buffers)

    def publish(self, lease: Lease, *, is_turn: bool = True) -> None:
        """Share what the lease's caches hold, park them, keep to the budget.

        is_turn: somebody asked for it. What is fed ahead makes nothing else older.
        """
        hot = lease.hot
        assert not lease.side
        self._end_lease(lease)
        if not hot.is_consistent():
            self._withdraw_faulty(hot)
        elif hot.token_ids:
            self._held.clock += is_turn
            self._lending.lend(lease)
            hot.set_state(None)
            hot.last_used = self._held.clock
            self._held.parked[hot.conversation_id] = hot
        self._eviction.drop_unused(lease.locked)
        self._eviction.keep_to_limits()

    def abandon(self, lease: Lease) -> None:
        """Drop what the request added to the lease's caches; what was restored stays if it can.

        Also the way out of a publish that failed half-way.
        """
        self._end_lease(lease)
        if self._held.parked.get(lease.hot.conversation_id) is lease.hot:
            del self._held.parked[lease.hot.conversation_id]
        if lease.side or not self._take_back(lease):
            self._lending.withdraw(lease.hot)
        self._eviction.drop_unused(lease.locked)

    def _take_back(self, lease: Lease) -> bool:
        """Park what a cache held before its request failed, if that is still there."""
        hot = lease.hot
        num_tokens = min(lease.restored, hot.num_tokens)
        if not num_tokens or any(leaf.offset < num_tokens for leaf in hot.leaves.kv):
            return False
        try:
            self._lending.drop_beyond(hot, num_tokens)
            hot.cut(num_tokens)
            hot.set_state(None)
            evaluate(hot.leaves.buffers)
            lease.snapshots.clear()
            self._lending.lend(lease)
        except Exception:
            log.exception("the live caches of %s are lost", hot.conversation_id)
            return False
        self._held.parked[hot.conversation_id] = hot
        return True

    def forget(self, conversation_id: ConversationId) -> None:
        """Drop what only this conversation uses."""
        self._eviction.forget(conversation_id)
        hot = self._held.parked.get(conversation_id)
        if hot is not None:
            self._eviction.give_up(hot)

    def pin(self, conversation_id: ConversationId, *, pinned: bool) -> None:
        """What a pinned conversation uses is given up after everything unpinned."""
        if pinned:
            self._held.pinned.add(conversation_id)
        else:
            self._held.pinned.discard(conversation_id)

    def set_budget(self, budget_bytes: int) -> None:
        """Hold at most so many bytes from now on."""
        self._eviction.budget_bytes = budget_bytes
        self._eviction.keep_to_budget()

    def evict(self, victim: Victim) -> int:
        """Give up what a policy named. Returns the bytes that this freed."""
        return self._eviction.evict(victim)

    def evict_hot(self) -> None:
        """Give up all parked caches; their tokens stay in the tree."""
        self._eviction.evict_hot()

    def evict_snapshots(self) -> None:
        """Give up all snapshots, and what is useless without them."""
        self._eviction.evict_snapshots()

    def evict_all(self) -> None:
        """Give up everything that no request is using."""
        self._eviction.evict_all()

    def ledger(self) -> Ledger:
        """Bytes held."""
        return self._held.ledger()

    def holdings(self) -> Holdings:
        """What a policy decides on."""
        return self._eviction.holdings()

    def statistics(self) -> CacheStatistics:
        return self._held.statistics(self._eviction.budget_bytes)

    def nodes(self) -> Iterator[KvNode]:
        """All nodes of the tree, parents before children."""
        return self._held.tree.nodes()

    def parked(self, conversation_id: ConversationId) -> HotCache | None:
        """A conversation's live caches while no request uses them."""
        return self._held.parked.get(conversation_id)

    def check_invariants(self) -> None:
        """Assert what must hold between two steps of the engine."""
        self._held.tree.check_invariants()
        known = {id(hot) for hot in self._held.parked.values()}
        known |= {id(lease.hot) for lease in self._held.leases}
        for node in self._held.tree.nodes():
            if node.snapshot is not None:
                assert node.snapshot.num_tokens == node.end
            if isinstance(node.span, LentSpan):
                assert id(node.span.hot) in known
                assert (node.start, node.end) == (node.span.start, node.span.end)
                assert node.span.hot.run.part(node.start, node.end) == node.run
        for conversation_id, hot in self._held.parked.items():
            assert hot.conversation_id == conversation_id
            assert hot.is_consistent()
        if not self._held.leases:
            assert all(node.lock_count == 0 and node.users for node in self._held.tree.nodes())
            within = self._held.ledger().total_bytes <= self._eviction.budget_bytes
            assert within or self._eviction.is_exhausted()

    # Audits

    def start_audit(
        self, new_caches: Callable[[], list[object]], max_tokens: int
    ) -> tuple[KvNode, Lease] | None:
        """The point of at most max_tokens checked least recently, with empty caches to repeat it on."""
        points = [node for node in self._held.tree.nodes() if self._held.is_point(node)]
        fitting = [node for node in points if node.end <= max_tokens and not node.lock_count]
        if not fitting:
            return None
        node = min(fitting, key=lambda node: node.checked)
        nothing = Match(node=node)
        return node, self._lease(ConversationId(""), nothing, new_caches, side=True)

    def end_audit(self, node: KvNode, lease: Lease, wrong: KvNode | None) -> None:
        """The point was checked. What was found wrong on the way to it goes, with all below."""
        self.abandon(lease)
        self._held.counters.audits += 1
        node.checked = self._held.counters.audits
        if wrong is not None:
            self._held.counters.audit_faults += 1
            self._drop_faulty(wrong)

    # Reading ahead

    def match_beginning(self, conversation_id: ConversationId, token_ids: Sequence[int]) -> Match:
        """What a longer prompt that begins with token_ids would find."""
        return self._match(conversation_id, (*token_ids, _ANOTHER_TOKEN))

    def has_room(
        self,
        conversation_id: ConversationId,
        token_ids: Sequence[int],
        num_points: int,
        *,
        displaces: bool,
    ) -> bool:
        """Whether token_ids and num_points on the way to their end fit beside all that is kept.

        displaces: beside what the conversation's own live caches hold; the rest may make room.
        """
        hot = self._held.parked.get(conversation_id)
        capacity = abandoned = 0
        if hot is not None:
            match = self._match(conversation_id, token_ids)
            abandoned = max(0, self._usable_end(hot) - common_end(match.run, hot.run))
            capacity = min(map(kv.capacity, hot.leaves.kv), default=0)
        grown = kv.roomy(len(token_ids)) - capacity if len(token_ids) > capacity else 0
        needed = (grown + abandoned) * self._layout.kv_bytes_per_token
        needed += num_points * self._layout.snapshot_bytes
        own = hot.nbytes if hot is not None else 0
        kept = own if displaces else self._held.ledger().total_bytes
        return needed <= self._eviction.budget_bytes - kept

    def _usable_end(self, hot: HotCache) -> int:
        """How much of a parked cache the tree keeps if it is cut: what lies beyond is a dead end."""
        nodes = [step.node for step in self._held.tree.match(hot.run)]
        used = [node for node in nodes if self._held.is_point(node) or len(node.children) > 1]
        return max((node.end for node in used), default=0)

    # Restoring

    def _match(self, conversation_id: ConversationId, prompt_ids: Sequence[int]) -> Match:
        hot = self._held.parked.get(conversation_id)
        held = hot.run if hot else TokenRun((), ())
        needs_snapshot = self._held.needs_snapshot
        return deepest_match(self._held.tree, prompt_ids, held, needs_snapshot=needs_snapshot)

    def _lease(
        self,
        conversation_id: ConversationId,
        match: Match,
        new_caches: Callable[[], list[object]],
        *,
        side: bool,
        faulted: int = 0,
    ) -> Lease:
        hot = None if side else self._held.parked.pop(conversation_id, None)
        if hot is None:
            hot = HotCache(conversation_id, new_caches())
        lease = Lease(
            hot=hot,
            restored=match.restored,
            matched=match.matched,
            logits=None,
            side=side,
            locked=match.node,
            faulted=faulted,
        )
        self._held.tree.lock(match.node)
        self._held.leases.append(lease)
        return lease

    def _withdraw_inconsistent(
        self, conversation_id: ConversationId, prompt_ids: Sequence[int]
    ) -> int:
        """Take out parked caches that do not hold what they say.

        Returns:
            Tokens of the prompt that they said they hold.
        """
        hot = self._held.parked.get(conversation_id)
        if hot is None or hot.is_consistent():
            return 0
        del self._held.parked[conversation_id]
        self._withdraw_faulty(hot)
        return common_prefix_len(hot.token_ids, prompt_ids)

    def _withdraw_faulty(self, hot: HotCache) -> None:
        self._held.counters.restore_faults += 1
        self._say_faulty(hot.token_ids, self._lending.withdraw(hot))

    def _quarantine(self, lease: Lease) -> None:
        """Drop the point that a lease was restored from, all below it, and the lease's caches."""
        self._held.counters.restore_faults += 1
        self._end_lease(lease)
        self._lending.withdraw(lease.hot)
        assert lease.locked is not None
        self._drop_faulty(lease.locked)

    def _drop_faulty(self, node: KvNode) -> None:
        self._held.tree.remove_subtree(node)
        self._say_faulty(path_run(node).token_ids, node.start)

    def _say_faulty(self, token_ids: Sequence[int], num_tokens: int) -> None:
        if self._on_fault is not None:
            self._on_fault(token_ids, num_tokens)

    def _make_way(self, conversation_id: ConversationId, match: Match) -> int:
        """Copy out of a conversation's parked caches what will be overwritten there.

        Returns:
            How much of the match they hold.
        """
        hot = self._held.parked.get(conversation_id)
        if hot is None:
            return 0
        if match.node is not None and borrows(match.node, hot):
            kept = match.restored
        else:
            kept = common_end(match.run, hot.run)
        self._lending.copy_out(hot, kept)
        return kept

    def _restore(
        self, lease: Lease, kept: int, prompt_ids: Sequence[int], match: Match, room: int
    ) -> None:
        hot = lease.hot
        hot.cut(kept)
        self._fill(hot, match, room)
        hot.set_state(match.snapshot)
        if match.snapshot is not None and match.restored == len(prompt_ids):
            lease.logits = match.snapshot.logits
        if match.node is not None and not lease.side:
            # Not those above: that they are passed by says nothing of how often they are asked for.
            match.node.last_used = self._held.clock

    def _first_buffers(self, hot: HotCache, room: int) -> int:
        """Bytes of the K/V buffers that the first tokens of an empty cache will make."""
        is_new = not hot.num_tokens and all(leaf.keys is None for leaf in hot.leaves.kv)
        return kv.roomy(room) * self._layout.kv_bytes_per_token if is_new else 0

    def _fill(self, hot: HotCache, match: Match, room: int) -> None:
        """Copy the tree's K/V of [hot.num_tokens, match.restored) behind what hot holds."""
        start, end = hot.num_tokens, match.restored
        if start == end:
            return
        parts: list[tuple[object, ...]] = []
        for node in reversed(list(ancestry(match.node))):
            first, last = max(start, node.start), min(end, node.end)
            if first < last:
                parts.append(node.span.range(first - node.start, last - node.start))
        self._held.counters.copied_bytes += kv.append_slices(hot.leaves.kv, parts, end, room)
        hot.adopt(path_run(match.node).part(start, end))

    def _end_lease(self, lease: Lease) -> None:
        """Idempotent."""
        if lease in self._held.leases:
            self._held.leases.remove(lease)
            self._held.tree.unlock(lease.locked)
