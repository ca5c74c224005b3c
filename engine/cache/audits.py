"""Audits of stored state: which resume point is due, and what an audit found. Engine thread only.

AuditJob (checking/audit.py) recomputes the state. It calls `start` first. At the end it abandons
the lease, and calls `record` unless the audit stopped without a result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.cache.faults import Quarantine
from engine.cache.holdings import Holdings, Lease
from engine.cache.hot import KvNode
from engine.cache.matching import Match
from engine.cache.radix import path_run
from engine.cache.restoring import Restorer
from engine.types import ConversationId


class Audits:
    """The audits of one prefix cache. PrefixCache owns this object."""

    def __init__(self, holdings: Holdings, restorer: Restorer, quarantine: Quarantine) -> None:
        self._holdings = holdings
        self._restorer = restorer
        self._quarantine = quarantine

    def start(
        self,
        new_caches: Callable[[], list[object]],
        max_tokens: int,
        can_feed: Callable[[Sequence[int]], bool],
    ) -> tuple[KvNode, Lease] | None:
        """Select the least recently audited resume point among those of at most max_tokens tokens.

        Args:
            new_caches: function that returns empty caches of the model.
            max_tokens: highest number of tokens to feed again.
            can_feed: function that returns True if tokens can be fed again. Pictures that were read
                before a restart may not be known.

        Returns:
            The node that ends at the resume point, and a lease of empty caches. The audit feeds the
            tokens of the node's path to these caches. None if no unlocked resume point has at most
            max_tokens tokens.
        """
        points = [
            node for node in self._holdings.tree.nodes() if self._holdings.is_resume_point(node)
        ]
        fitting = [node for node in points if node.end <= max_tokens and not node.lock_count]
        # `checked` is the serial number of a node's newest audit, so the lowest is the oldest.
        by_age = sorted(fitting, key=lambda node: node.checked)
        node = next((node for node in by_age if can_feed(path_run(node).token_ids)), None)
        if node is None:
            return None
        # The lease locks the node but restores no tokens. The lease of a side request is never
        # parked, so its conversation id is never used.
        no_tokens = Match(node=node)
        lease = self._restorer.make_lease(ConversationId(""), no_tokens, new_caches, side=True)
        return node, lease

    def record(self, node: KvNode, wrong: KvNode | None) -> None:
        """Record that a resume point was audited. The lease of the audit must be abandoned before.

        wrong: the first node on the path whose stored state differs from the recomputed state, or
        None if all stored state was right. The wrong node and all nodes below it are removed.
        """
        self._holdings.counters.audits += 1
        node.checked = self._holdings.counters.audits
        if wrong is not None:
            self._holdings.counters.audit_faults += 1
            self._quarantine.remove_node(wrong)
