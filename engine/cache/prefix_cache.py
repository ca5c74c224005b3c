"""The prefix cache: K/V and recurrent state of processed tokens, kept for later prompts.

A request acquires a lease on a hot cache: the model's cache objects for one conversation (hot.py).
The hot cache then holds the longest restorable prefix of the prompt. The runner feeds the other
tokens to the hot cache, and calls HotCache.commit after each pass. Then the runner publishes the
lease. The published tokens become nodes of a radix tree (radix.py). The K/V of a node lies in
separate arrays, or is a range of a hot cache. Auxiliary state, such as the state of recurrent
layers, cannot be cut back to an earlier token. So it is kept as snapshots at single positions
(snapshot.py).

Terms:
    leased         a hot cache while a request uses it
    parked         a hot cache that no request uses, at most one per conversation
    resume point   a position at which a request can start: it has K/V of all earlier tokens and, if
                   the model has auxiliary state, a snapshot

Tokens [0, n) of a request:
    [0, restored)   K/V in the hot cache, auxiliary state from a snapshot   after acquire
    [restored, m)   fed by the runner, held by the hot cache only           while the request runs
    [0, m)          nodes of the tree, whose K/V lies in the hot cache      after publish

Invariants (check_invariants tests most of them): a parked cache holds exactly the K/V of its list
of tokens. The K/V that a node references is the K/V of the node's tokens. Nodes that a running
request was restored from are locked, and are not evicted. Between two requests, the cache is within
its byte budget, or nothing is left to evict.

PrefixCache is the interface, used on the engine thread only. An instance belongs to one model. The
runner calls it for each request, cache_space.py for commands, memory.py to set the budget.
holdings.py defines the data and its rules; lending.py, restoring.py, eviction.py, faults.py,
audits.py and this module change the data. aside.py keeps the state of a preview, which is not a
part of the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import mlx.core as mx

from engine.cache import kv
from engine.cache.aside import Aside
from engine.cache.audits import Audits
from engine.cache.eviction import Eviction
from engine.cache.faults import OnFault, Quarantine
from engine.cache.grafting import Graft, graft
from engine.cache.holdings import Holdings, Lease
from engine.cache.invariants import check_invariants
from engine.cache.layout import Layout
from engine.cache.lending import Lending
from engine.cache.matching import Match
from engine.cache.points import PointKind
from engine.cache.policy import Policy
from engine.cache.ranking import CoverageRanking
from engine.cache.restoring import Restorer
from engine.cache.snapshot import Snapshot, capture
from engine.cache.trees import evaluate
from engine.cache_figures import CacheStatistics
from engine.cleanup import undo_on_error
from engine.errors import attempt
from engine.types import ConversationId

# A token id that no vocabulary contains. It stands for the unknown next token of a prompt. A match
# leaves at least the last token of a prompt to feed, unless the logits after the prompt are stored.
# So a known beginning of a prompt is matched with this token behind it: all of the beginning can
# then match.
ANOTHER_TOKEN = -1


class PrefixCache:
    """The stored state of all conversations on one model, within a byte budget.

    Calls for one request: first acquire; then reserve_tokens and capture_snapshot while its tokens
    are fed, and publish_prompt if other requests wait for the prompt; at the end either publish or
    abandon. A side request is always abandoned. Callers use the public parts directly: `holdings`
    to read the data, `eviction`, `audits` and `aside`.
    """

    def __init__(
        self,
        layout: Layout,
        *,
        budget_bytes: int,
        max_hot: int,
        policy: Policy = CoverageRanking,
        on_fault: OnFault | None = None,
        far_budgets: Sequence[int] = (),
    ) -> None:
        """Create an empty cache for one model.

        Args:
            layout: the bytes per token and per snapshot of the model.
            budget_bytes: highest number of bytes to hold. set_budget changes it.
            max_hot: highest number of parked caches.
            policy: the order of eviction.
            on_fault: called for each faulty stored state that is found and removed.
            far_budgets: highest number of bytes that each other stage may hold, rank 1 first.
                budget_bytes then limits the stage of this process. Empty on one machine.
        """
        self.holdings = Holdings(layout)
        self._lending = Lending(self.holdings)
        self._restorer = Restorer(self.holdings, self._lending)
        self._quarantine = Quarantine(self.holdings, self._lending, on_fault)
        self.aside = Aside(self.holdings)
        self.audits = Audits(self.holdings, self._restorer, self._quarantine)
        self.eviction = Eviction(
            self.holdings,
            self._lending,
            budget_bytes=budget_bytes,
            max_hot=max_hot,
            policy=policy,
            far_budgets=far_budgets,
        )

    @property
    def spare_bytes(self) -> int:
        """Number of bytes that the budget leaves free. It may be negative while requests run."""
        return self.eviction.total_budget - self.holdings.ledger().total_bytes

    @property
    def budget_bytes(self) -> int:
        """Highest number of bytes that the cache may hold, on all stages."""
        return self.eviction.total_budget

    @property
    def max_held(self) -> int:
        """Highest number of tokens that the cache can hold, with one snapshot and nothing else."""
        return self.eviction.max_held

    # Calls for one request

    def acquire(
        self,
        conversation_id: ConversationId,
        prompt_ids: Sequence[int],
        new_caches: Callable[[], list[object]],
        *,
        room: int,
        side: bool,
    ) -> Lease:
        """Lease live caches that hold as much of prompt_ids as can be restored.

        A conversation's parked cache is taken over, except for a side request. K/V in it that other
        prompts may need is first copied to the tree. If the restored state is faulty, it is removed
        and an earlier resume point is used. If an error is raised, no lease is left.

        Args:
            conversation_id: the conversation of the request.
            prompt_ids: the token ids of the prompt.
            new_caches: function that returns empty caches, for a conversation without live caches.
            room: number of tokens that the caches should hold without growing.
            side: True for a side request, such as a title. It gets separate caches, and nothing is
                published or evicted for it.
        """
        if not side:
            for new in self.aside.take(conversation_id, prompt_ids, self.make_room):
                graft(self.holdings, conversation_id, new)
        # Number of leading prompt tokens for which faulty stored state was found (Lease.faulted).
        faulted = self._quarantine.check_parked(conversation_id, prompt_ids)
        while True:
            match = self._restorer.match(conversation_id, prompt_ids)
            # Copy before the lease begins: if the copy fails, the cache is still parked and valid.
            kept = 0 if side else self._restorer.vacate(conversation_id, match)
            lease = self._restorer.make_lease(
                conversation_id, match, new_caches, side=side, faulted=faulted
            )
            with undo_on_error(partial(self.abandon, lease)):
                self._restorer.restore(lease, match, prompt_ids, kept=kept, room=room)
                if not side:
                    lease.first_buffers = self._restorer.first_buffers(lease.hot, room)
                    self.eviction.keep_to_budget()
            if lease.hot.is_restored(match.restored, match.snapshot):
                self.holdings.counters.matches += match.restored > 0
                return lease
            # The restored state is not the state of the matched tokens. Remove the resume point,
            # and restore from the next resume point above it. The loop ends, because each
            # iteration removes a node, and a lease without restored tokens is not faulty.
            faulted = max(faulted, match.restored)
            self._quarantine.remove_restored(lease)

    def capture_snapshot(
        self, lease: Lease, kind: PointKind, logits: mx.array | None = None
    ) -> Snapshot:
        """Capture a snapshot after the tokens that the runner has committed so far.

        The snapshot belongs to the lease until publish adds it to the tree. A model without
        auxiliary state needs a snapshot only to keep logits.

        Args:
            lease: the lease of the request.
            kind: the reason why the snapshot is kept.
            logits: logits (V,) after the last committed token. Given only at the end of a prompt.
        """
        snapshot = capture(lease.hot.leaves, lease.hot.num_tokens, kind, logits)
        lease.snapshots.append(snapshot)
        if not lease.side:
            self.eviction.note_added(snapshot.nbytes)
        return snapshot

    def reserve_tokens(self, lease: Lease, num_tokens: int) -> None:
        """Grow the K/V buffers to hold num_tokens, so that no later step copies the buffers.

        The runner calls this before each pass. Before the first pass of a new conversation no
        buffer exists, and the call does nothing. Therefore it is called again after that pass.
        """
        if num_tokens <= lease.reserved:
            return
        leaves = lease.hot.leaves
        growth = kv.growth(leaves, num_tokens)
        if growth and not lease.side:
            self.eviction.note_added(0, to_come=growth)
        self.holdings.counters.copied_bytes += kv.reserve(leaves, num_tokens)
        if lease.hot.token_ids:
            # Without committed tokens there may be no buffers yet, and nothing was reserved.
            lease.reserved = num_tokens

    def cut_back(self, lease: Lease, num_tokens: int) -> None:
        """Remove the tokens after num_tokens from a lease, because their forward pass failed.

        The runner calls this if feeding the end of a reply fails. It then publishes the rest.

        Raises:
            RuntimeError: the K/V of the earlier tokens cannot be computed either.
        """
        lease.hot.cut(num_tokens)
        lease.snapshots[:] = [point for point in lease.snapshots if point.num_tokens <= num_tokens]
        evaluate(lease.hot.leaves.buffers)

    def publish(self, lease: Lease, *, is_turn: bool = True) -> None:
        """Add a lease's tokens and snapshots to the tree, park its caches, and evict if needed.

        The caller must not use the lease afterwards. Caches whose content does not agree with the
        lease's tokens are removed and not parked. If this method raises an error, the caller must
        call abandon().

        is_turn: True for the tokens of a request: Holdings.clock advances by one turn. False for
        tokens that were read ahead.
        """
        hot = lease.hot
        assert not lease.side
        self.holdings.remove_lease(lease)
        if not hot.is_consistent():
            self._quarantine.remove_cache(hot)
        elif hot.token_ids:
            self.holdings.clock += is_turn
            self._lending.add_nodes(lease)
            hot.set_state(None)  # only the K/V of a parked cache is used again
            hot.last_used = self.holdings.clock
            self.holdings.parked[hot.conversation_id] = hot
            self.holdings.counters.publications += 1
        self.eviction.remove_unused(lease.locked)
        self.eviction.keep_to_limits()

    def publish_prompt(self, lease: Lease) -> None:
        """Add the tokens and snapshots of a lease to the tree, and keep the lease.

        The nodes reference the live caches of the lease, as after publish. The tokens then count as
        restored: abandon() keeps them. Do nothing if the caches do not agree with the tokens.
        """
        assert not lease.side
        if not lease.hot.is_consistent():
            return
        self._lending.add_nodes(lease)
        published = self.holdings.tree.match(lease.hot.run)[-1].node
        self.holdings.tree.lock(published)
        self.holdings.tree.unlock(lease.locked)
        lease.locked = published
        lease.restored = lease.hot.num_tokens
        lease.snapshots.clear()

    def set_aside(self, lease: Lease) -> None:
        """End a side request. Keep its state for the request that continues its reply (aside.py).

        If this method raises an error, the caller must call abandon().
        """
        assert lease.side
        if lease.hot.is_consistent():
            self.aside.keep(lease)
        self.abandon(lease)

    def abandon(self, lease: Lease) -> None:
        """End a lease without publishing: park its caches with the restored tokens only.

        Called for side requests, audits and failed requests, even if publish has raised an error.
        Caches that cannot be cut back to the restored tokens are removed. abandon adds no bytes,
        but state that the lease had locked may have to be evicted now.
        """
        self.holdings.remove_lease(lease)
        # publish() may have parked the caches before it raised an error.
        if self.holdings.parked.get(lease.hot.conversation_id) is lease.hot:
            del self.holdings.parked[lease.hot.conversation_id]
        if lease.side or not self._restorer.take_back(lease):
            self._lending.withdraw(lease.hot)
        self.eviction.remove_unused(lease.locked)
        # abandon() often runs while an error is handled. A second error must not replace it.
        attempt("keeping to the limits of the cache", self.eviction.keep_to_limits)

    # Commands of the app, and the byte budget

    def forget(self, conversation_id: ConversationId) -> None:
        """Remove a conversation's parked cache, and the nodes that no other conversation uses.

        State that a running request uses is kept. If a request of this conversation is running, its
        publish adds the conversation's state again.
        """
        self.aside.forget(conversation_id)
        self.eviction.forget(conversation_id)
        hot = self.holdings.parked.get(conversation_id)
        if hot is not None:
            self.eviction.evict_parked(hot)

    def hand_over(self, conversation_id: ConversationId, heir: ConversationId) -> None:
        """Make another conversation a user of all nodes that this one uses. Call forget() next."""
        for node in self.holdings.tree.nodes():
            if conversation_id in node.users:
                node.users.add(heir)

    def pin(self, conversation_id: ConversationId, *, pinned: bool) -> None:
        """Pin or unpin a conversation. Pinned state is evicted after all unpinned state."""
        if pinned:
            self.holdings.pinned.add(conversation_id)
        else:
            self.holdings.pinned.discard(conversation_id)

    def set_budget(self, budget_bytes: int) -> None:
        """Set the number of bytes that the cache may hold, and evict down to it.

        MemoryWatch (memory.py) calls this when the machine's available memory changes.
        """
        self.eviction.budget_bytes = budget_bytes
        self.eviction.keep_to_budget()

    def evict_all(self) -> None:
        """Evict all state that no running request uses.

        Called when memory ran out, before the cache is dropped, and for an Evict command.
        """
        self.aside.drop()
        self.eviction.evict_all()

    # Reports, also for the disk tier, tests and benchmarks

    def statistics(self) -> CacheStatistics:
        """Return the held bytes, the budget and the counters, for the app and for MemoryWatch."""
        return self.holdings.statistics(self.eviction.total_budget)

    def check_invariants(self) -> None:
        """Assert the invariants that hold between two steps of the engine."""
        check_invariants(self.holdings)
        if not self.holdings.leases:
            assert self.eviction.is_within() or self.eviction.is_exhausted()

    # State on disk (disk/tier.py)

    def match(self, conversation_id: ConversationId, prompt_ids: Sequence[int]) -> Match:
        """Return the deepest resume point of a prompt. Nothing is changed."""
        return self._restorer.match(conversation_id, prompt_ids)

    def make_room(self, num_bytes: int) -> bool:
        """Evict until num_bytes fit into the budget. Return False if they can't fit."""
        if num_bytes > self.eviction.total_budget:
            return False
        self.eviction.keep_to_budget(num_bytes)
        return True

    def graft(self, conversation_id: ConversationId, new: Graft) -> None:
        """Add state that was read from disk. The caller has made room for it.

        If making room evicted a part of the path, more is added than fits. So keep to the budget.
        """
        graft(self.holdings, conversation_id, new)
        self.eviction.keep_to_budget()

    # Reading ahead

    def has_room(
        self,
        conversation_id: ConversationId,
        token_ids: Sequence[int],
        num_points: int,
        *,
        displaces: bool,
    ) -> bool:
        """Return True if the budget has room to read token_ids ahead.

        The runner calls this before it acquires a lease for a read-ahead. Nothing is changed.

        Args:
            conversation_id: the conversation to read ahead for.
            token_ids: the beginning of the conversation's next prompt.
            num_points: number of snapshots that feeding token_ids will capture.
            displaces: True if other stored state may be evicted. Only the conversation's own live
                caches then reduce the room. If False, all stored state reduces the room.
        """
        needed = self._restorer.bytes_ahead(conversation_id, token_ids, num_points)
        hot = self.holdings.parked.get(conversation_id)
        own = hot.nbytes if hot is not None else 0
        kept = own if displaces else self.holdings.ledger().total_bytes
        return needed <= self.eviction.total_budget - kept
