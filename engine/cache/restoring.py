"""The steps that restore cached state into the live caches of a request. Engine thread only.

PrefixCache.acquire calls them in this order: match, vacate, make_lease, restore.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.cache import kv
from engine.cache.holdings import Holdings, Lease
from engine.cache.hot import HotCache, lender
from engine.cache.lending import Lending
from engine.cache.matching import Match, deepest_match
from engine.cache.radix import TokenRun, ancestry, common_end, path_run
from engine.types import ConversationId


class Restorer:
    """The steps that restore cached state of one prefix cache."""

    def __init__(self, holdings: Holdings, lending: Lending) -> None:
        self._holdings = holdings
        self._lending = lending

    def match(self, conversation_id: ConversationId, prompt_ids: Sequence[int]) -> Match:
        hot = self._holdings.parked.get(conversation_id)
        held = hot.run if hot else TokenRun((), ())
        needs_snapshot = self._holdings.needs_snapshot
        return deepest_match(self._holdings.tree, prompt_ids, held, needs_snapshot=needs_snapshot)

    def vacate(self, conversation_id: ConversationId, match: Match) -> int:
        """Copy useful K/V out of the conversation's parked cache before a request overwrites it.

        Returns:
            Number of leading tokens of the match that the parked cache holds.
        """
        hot = self._holdings.parked.get(conversation_id)
        if hot is None:
            return 0
        if match.node is not None and lender(match.node) is hot:
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

        A side request, or a conversation without a parked cache, gets new empty caches.
        """
        hot = None if side else self._holdings.parked.pop(conversation_id, None)
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
        self._holdings.add_lease(lease)
        return lease

    def restore(
        self, lease: Lease, match: Match, prompt_ids: Sequence[int], *, kept: int, room: int
    ) -> None:
        """Fill the leased caches with exactly the tokens and the state of a match.

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
            # Do not refresh the nodes above this node: this request did not resume at their ends.
            match.node.last_used = self._holdings.clock

    def first_buffers(self, hot: HotCache, room: int) -> int:
        """Return the size in bytes of the K/V buffers that the first forward pass will allocate.

        0 if the hot cache already has buffers.
        """
        is_new = not hot.num_tokens and all(leaf.keys is None for leaf in hot.leaves.kv)
        return kv.roomy(room) * self._holdings.kv_bytes_per_token if is_new else 0

    def _fill(self, hot: HotCache, match: Match, room: int) -> None:
        """Copy K/V from the tree to a hot cache, for matched tokens that the hot cache lacks."""
        start, end = hot.num_tokens, match.restored
        if start == end:
            return
        parts: list[tuple[object, ...]] = []
        for node in reversed(list(ancestry(match.node))):
            first, last = max(start, node.start), min(end, node.end)
            if first < last:
                parts.append(node.span.range(first - node.start, last - node.start))
        self._holdings.counters.copied_bytes += kv.append_slices(hot.leaves.kv, parts, end, room)
        hot.adopt(path_run(match.node).part(start, end))
