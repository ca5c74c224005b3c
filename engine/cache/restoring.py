"""The steps that restore cached state into the live caches of a request. Engine thread only.

A request takes over the live caches that the last request of its conversation left behind, the
parked cache. Its tokens are compared with the match: the path in the radix tree that shares the
most tokens with the prompt. Shared leading tokens stay in the cache. The rest of the match is
copied from the tree.

PrefixCache.acquire calls the steps in this order:

    match          find the deepest resume point; change nothing
    vacate         copy K/V that other prompts may need from the parked cache to the tree
    make_lease     lock the matched nodes, and remove the cache from the parked caches
    restore        cut the cache, fill it from the tree, and set its auxiliary state
    first_buffers  return the bytes that the first pass will allocate

vacate comes before make_lease: if its copies fail, the cache is still parked and valid. The match
stays valid after vacate, because vacate removes only dead ends: nodes without children from which
no request can resume. PrefixCache also calls match for read-ahead, and make_lease for audits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial

from engine.cache import kv
from engine.cache.holdings import Holdings, Lease
from engine.cache.hot import HotCache, lender
from engine.cache.lending import Lending
from engine.cache.matching import Match, deepest_match
from engine.cache.positions import ConversationCaches
from engine.cache.radix import TokenRun, ancestry, common_end, path_run
from engine.cache.trees import evaluate
from engine.errors import attempt
from engine.types import ConversationId

log = logging.getLogger(__name__)


class Restorer:
    """The steps that restore cached state of one prefix cache. A restorer has no own state."""

    def __init__(self, holdings: Holdings, lending: Lending) -> None:
        self._holdings = holdings
        self._lending = lending

    def match(self, conversation_id: ConversationId, prompt_ids: Sequence[int]) -> Match:
        """Return the deepest resume point of a prompt. Change nothing.

        If two resume points are equally deep, the one is returned that shares more tokens with the
        conversation's parked cache. Fewer tokens must then be copied.
        """
        hot = self._holdings.parked.get(conversation_id)
        held = hot.run if hot else TokenRun((), ())
        needs_snapshot = self._holdings.needs_snapshot
        return deepest_match(self._holdings.tree, prompt_ids, held, needs_snapshot=needs_snapshot)

    def vacate(self, conversation_id: ConversationId, match: Match) -> int:
        """Copy useful K/V out of the conversation's parked cache before a request overwrites it.

        Nodes that reference tokens after the match get a copy of their K/V, or are removed if they
        are dead ends. The cache itself is not cut yet.

        Returns:
            Number of leading tokens of the match that the parked cache holds. 0 without a parked
            cache.
        """
        hot = self._holdings.parked.get(conversation_id)
        if hot is None:
            return 0
        if match.node is not None and lender(match.node) is hot:
            # The K/V of the matched node lies in this cache. So the cache holds the whole path to
            # the node, and no tokens have to be compared.
            kept = match.restored
        else:
            kept = common_end(match.run, hot.run)
        self._lending.copy_out(hot, kept)
        return kept

    def make_lease(
        self,
        conversation_id: ConversationId,
        match: Match,
        new_caches: Callable[[], list[object]],
        *,
        side: bool,
        faulted: int = 0,
    ) -> Lease:
        """Lock the nodes of a match, and lease the conversation's parked cache to a request.

        The cache is no longer parked until the lease ends. A side request, an audit, or a
        conversation without a parked cache gets new empty caches.

        Args:
            conversation_id: the conversation of the request.
            match: the resume point.
            new_caches: function that returns empty caches of the model.
            side: True for a side request or an audit.
            faulted: number of leading prompt tokens for which faulty stored state was found.
        """
        hot = None if side else self._holdings.parked.pop(conversation_id, None)
        if hot is None:
            hot = HotCache(conversation_id, ConversationCaches(new_caches()))
        lease = Lease(
            hot=hot,
            restored=match.restored,
            matched=match.matched,
            logits=None,
            side=side,
            locked=match.node,
            faulted=faulted,
            has_points=not side,
            saved=match.restored,
        )
        self._holdings.add_lease(lease)
        return lease

    def restore(
        self, lease: Lease, match: Match, prompt_ids: Sequence[int], *, kept: int, room: int
    ) -> None:
        """Fill the leased caches with exactly the tokens and the state of a match.

        If the match covers the whole prompt, the lease also gets the logits after the prompt. The
        request then needs no prefill.

        Args:
            lease: the lease that was made for the match.
            match: the resume point.
            prompt_ids: the token ids of the prompt.
            kept: number of leading tokens that the caches already hold, as returned by `vacate`.
            room: number of tokens that the caches should hold without growing.
        """
        hot = lease.hot
        hot.cut(kept)
        self._fill(hot, match, room)
        hot.set_state(match.snapshot)
        if match.snapshot is not None and match.restored == len(prompt_ids):
            lease.logits = match.snapshot.logits
        if match.node is not None and not lease.side:
            # A side request does not count as a use of the node.
            # Do not refresh the nodes above this node: this request did not resume at their ends.
            match.node.last_used = self._holdings.clock

    def first_buffers(self, hot: HotCache, room: int) -> int:
        """Return the size in bytes of the K/V buffers that the first forward pass will allocate.

        acquire then evicts until the buffers fit into the budget. 0 if the hot cache already has
        buffers.
        """
        is_new = not hot.num_tokens and not hot.nbytes
        return kv.roomy(room) * self._holdings.kv_bytes_per_token if is_new else 0

    def _fill(self, hot: HotCache, match: Match, room: int) -> None:
        """Copy K/V from the tree to a hot cache, for matched tokens that the hot cache lacks."""
        start, end = hot.num_tokens, match.restored
        if start == end:
            return
        parts: list[kv.KvPart] = []  # lazy slices of K/V, in the order of the tokens
        for node in reversed(list(ancestry(match.node))):
            first, last = max(start, node.start), min(end, node.end)
            if first < last:
                parts.append(node.span.range(first - node.start, last - node.start))
        self._holdings.counters.copied_bytes += kv.append_slices(hot.leaves, parts, end, room)
        hot.adopt(path_run(match.node).part(start, end))

    def bytes_ahead(
        self, conversation_id: ConversationId, token_ids: Sequence[int], num_points: int
    ) -> int:
        """Return the number of bytes that a lease adds until token_ids are fed.

        num_points: number of snapshots that feeding token_ids will capture.
        """
        hot = self._holdings.parked.get(conversation_id)
        # capacity: number of tokens that fit into the conversation's present K/V buffers.
        # abandoned: number of tokens that acquire will copy out of these buffers to the tree,
        # because the next prompt overwrites them. The copies need memory too.
        capacity = abandoned = 0
        if hot is not None:
            match = self.match(conversation_id, token_ids)
            abandoned = max(0, self._usable_end(hot) - common_end(match.run, hot.run))
            capacity = kv.least_capacity(hot.leaves)
        grown = kv.roomy(len(token_ids)) - capacity if len(token_ids) > capacity else 0
        needed = (grown + abandoned) * self._holdings.layout.kv_bytes_per_token
        needed += num_points * self._holdings.layout.snapshot_bytes
        return needed

    def _usable_end(self, hot: HotCache) -> int:
        """Return the number of a parked cache's tokens that the tree keeps if the cache is emptied.

        The tree removes the nodes after these tokens (Lending.copy_out), because no prompt can
        resume there.
        """
        nodes = [step.node for step in self._holdings.tree.match(hot.run)]
        # Nodes are removed from the leaf upwards. When a node is checked, its child on this path is
        # already removed, so num_removed is 1.
        used = [node for node in nodes if not self._holdings.is_dead_end(node, num_removed=1)]
        return max((node.end for node in used), default=0)

    # End of a lease without publishing

    def take_back(self, lease: Lease) -> bool:
        """Cut the caches of a lease back to the restored tokens, and park the caches.

        Returns:
            False if no token was restored, or if the K/V of the restored tokens cannot be kept.
        """
        hot = lease.hot
        num_tokens = min(lease.restored, hot.num_tokens)
        if not num_tokens or not kv.holds(hot.leaves, num_tokens):
            return False
        # attempt returns None if _cut_to succeeds, or else a Failure.
        if attempt("keeping live caches", partial(self._cut_to, lease, num_tokens)) is not None:
            log.warning("the live caches of conversation %s are lost", hot.conversation_id)
            return False
        self._holdings.parked[hot.conversation_id] = hot
        return True

    def _cut_to(self, lease: Lease, num_tokens: int) -> None:
        """Remove the tokens of a lease after num_tokens, and the tree's nodes for these tokens.

        The nodes of the other tokens then reference the lease's caches. Without this, the K/V of
        the restored tokens would stay in memory twice.
        """
        hot = lease.hot
        self._lending.drop_beyond(hot, num_tokens)
        hot.cut(num_tokens)
        hot.set_state(None)
        evaluate(hot.leaves.buffers)
        lease.snapshots.clear()
        self._lending.add_nodes(lease)
