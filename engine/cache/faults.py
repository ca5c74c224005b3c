"""Removal of faulty stored state: caches and nodes that do not hold the tokens they should hold.

Each fault is counted and reported. The removed tokens are fed again, so the answer stays correct.
Engine thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.cache.holdings import Holdings, Lease
from engine.cache.hot import HotCache, KvNode
from engine.cache.lending import Lending
from engine.cache.radix import path_run
from engine.sequences import common_prefix_len
from engine.types import ConversationId

# Called for each fault. First argument: the token ids of the faulty path. Second argument: the
# number of leading tokens of this path that are still in the tree.
OnFault = Callable[[Sequence[int], int], None]


class Quarantine:
    """Removal of faulty caches and nodes. Each fault is counted and reported."""

    def __init__(self, holdings: Holdings, lending: Lending, on_fault: OnFault | None) -> None:
        self._holdings = holdings
        self._lending = lending
        self._on_fault = on_fault

    def check_parked(self, conversation_id: ConversationId, prompt_ids: Sequence[int]) -> int:
        """Remove a conversation's parked cache if its K/V does not match its list of tokens.

        Returns:
            Number of leading prompt tokens that the removed cache should have held. 0 if nothing
            was removed.
        """
        hot = self._holdings.parked.get(conversation_id)
        if hot is None or hot.is_consistent():
            return 0
        del self._holdings.parked[conversation_id]
        self.remove_cache(hot)
        return common_prefix_len(hot.token_ids, prompt_ids)

    def remove_cache(self, hot: HotCache) -> None:
        """Remove the nodes whose K/V lies in a faulty cache."""
        self._holdings.counters.restore_faults += 1
        self._report(hot.token_ids, self._lending.withdraw(hot))

    def remove_restored(self, lease: Lease) -> None:
        """End a lease with faulty restored state. Remove the lease's caches and resume point."""
        self._holdings.counters.restore_faults += 1
        self._holdings.remove_lease(lease)
        self._lending.withdraw(lease.hot)
        assert lease.locked is not None
        self.remove_node(lease.locked)

    def remove_node(self, node: KvNode) -> None:
        """Remove a faulty node and all nodes below it."""
        self._holdings.tree.remove_subtree(node)
        self._report(path_run(node).token_ids, node.start)

    def _report(self, token_ids: Sequence[int], num_tokens: int) -> None:
        if self._on_fault is not None:
            self._on_fault(token_ids, num_tokens)
