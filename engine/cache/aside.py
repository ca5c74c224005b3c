"""The state of a side request, kept beside the tree for the request that continues its reply.

A preview is such a side request. Its state is no part of the prefix cache, so keeping it evicts
nothing. Once a request of the same conversation begins with the same tokens, the state is grafted
into the tree, and the request restores it as any other. Engine thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.cache.grafting import Graft, stored_end
from engine.cache.holdings import Holdings, Lease
from engine.cache.hot import LentSpan
from engine.cache.snapshot import Snapshot
from engine.sequences import common_prefix_len
from engine.types import ConversationId


class Aside:
    """The new state of one side request: a graft for each snapshot, and one for its last token."""

    def __init__(self, holdings: Holdings) -> None:
        self._holdings = holdings
        self._conversation_id: ConversationId | None = None
        self._start = 0  # number of leading tokens whose K/V was in the tree already
        self._grafts: list[Graft] = []  # in the order of the tokens

    def keep(self, lease: Lease) -> None:
        """Copy the state of a side request that the tree lacks. Replace the state kept before."""
        self.drop()
        hot = lease.hot
        if hot.num_tokens == lease.restored:
            return
        run = hot.run
        start = self._start = stored_end(self._holdings, run)
        points = {point.num_tokens: point for point in lease.snapshots}
        for end in sorted({*points, run.end}):
            spans = [LentSpan(hot, start, end).copied()] if end > start else []
            self._grafts.append(Graft(run.part(0, end), spans, points.get(end)))
            start = max(start, end)
        self._conversation_id = hot.conversation_id

    def drop(self) -> None:
        """Free the kept state. Idempotent."""
        self._conversation_id = None
        self._grafts = []

    def forget(self, conversation_id: ConversationId) -> None:
        """Free the kept state if it belongs to a conversation."""
        if conversation_id == self._conversation_id:
            self.drop()

    def reach(self, conversation_id: ConversationId, prompt_ids: Sequence[int]) -> int:
        """Return how many leading tokens of a prompt the kept state would restore. Change nothing.

        The state of a side request that still runs counts, because its continuation ends and keeps
        it.
        """
        ends = [0]
        for lease in self._holdings.leases:
            if lease.side and lease.has_points and lease.hot.conversation_id == conversation_id:
                agreed = common_prefix_len(lease.hot.token_ids, prompt_ids)
                held = (point for point in lease.snapshots if point.num_tokens <= agreed)
                ends += [
                    one.num_tokens for one in held if _resumes(one, one.num_tokens, prompt_ids)
                ]
        if conversation_id == self._conversation_id:
            whole, cut_at = self._beginning(prompt_ids)
            kept = (one for one in whole if _resumes(one.snapshot, one.run.end, prompt_ids))
            ends += [*(one.run.end for one in kept), min(cut_at, len(prompt_ids) - 1)]
        return max(ends)

    def take(
        self,
        conversation_id: ConversationId,
        prompt_ids: Sequence[int],
        make_room: Callable[[int], bool],
    ) -> list[Graft]:
        """Return the kept state that a prompt begins with, in token order, and keep it no longer.

        Empty if the prompt begins with none of it. Empty too, and the state is freed, if the budget
        has no room for it, or if a part of the path before it was evicted.

        make_room: function that evicts until a number of bytes fits into the budget.
        """
        if conversation_id != self._conversation_id:
            return []
        last = self._grafts[-1].run
        taken, cut_at = self._beginning(prompt_ids)
        if cut_at:
            taken.append(_cut(self._grafts[len(taken)], cut_at))
        if not taken:
            return []
        self.drop()
        if not make_room(sum(one.nbytes for one in taken)):
            return []
        return taken if stored_end(self._holdings, last) == self._start else []

    def _beginning(self, prompt_ids: Sequence[int]) -> tuple[list[Graft], int]:
        """Return the grafts that a prompt begins with, and where it leaves the next one.

        The position is 0 if no part of the next one is of use. A preview that its request
        interrupts is some tokens ahead of the words that the request begins with.
        """
        agreed = common_prefix_len(self._grafts[-1].run.token_ids, prompt_ids)
        whole = [one for one in self._grafts if one.run.end <= agreed]
        start = whole[-1].run.end if whole else self._start
        can_cut = agreed > start and not self._holdings.needs_snapshot
        return whole, agreed if can_cut else 0


def _cut(kept: Graft, end: int) -> Graft:
    """Return the tokens of a graft before `end`, for a model whose K/V alone restores its state."""
    span = kept.spans[0]
    head, _ = span.split(end - (kept.run.end - span.num_tokens))
    return Graft(kept.run.part(0, end), [head], None)


def _resumes(point: Snapshot | None, end: int, prompt_ids: Sequence[int]) -> bool:
    """Return True if a prompt can resume at `end`: tokens are left, or the point has logits."""
    return end < len(prompt_ids) or (point is not None and point.logits is not None)
