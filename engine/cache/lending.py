"""Lent spans: references from radix tree nodes to K/V in the live caches of a conversation.

These live caches are called a hot cache. Publishing a turn copies no K/V, because the new nodes
reference the hot cache. Before a hot cache is overwritten or evicted, the K/V of useful nodes is
copied out of it, and the other nodes are removed. Engine thread only.
"""

from __future__ import annotations

from engine.cache.holdings import Holdings, Lease
from engine.cache.hot import HotCache, KvNode, LentSpan, lender
from engine.cache.kv import KvArrays
from engine.cache.points import PointKind
from engine.cache.radix import ancestry, common_end
from engine.cache.snapshot import Snapshot


class Lending:
    """Creation of lent spans, and their replacement by copies.

    A lent span always holds the K/V of exactly the tokens of its node.
    """

    def __init__(self, holdings: Holdings) -> None:
        self._holdings = holdings

    def add_nodes(self, lease: Lease) -> None:
        """Add tree nodes for all tokens in a lease's caches, and attach the lease's snapshots."""
        hot, tree = lease.hot, self._holdings.tree
        run, above = hot.run, self._restored_node(lease)
        path = tree.match(run, above)
        matched = path[-1].end if path else (above.end if above else 0)
        parent = tree.node_ending_at(path, matched) or above
        if matched < run.end:
            tree.append_leaf(parent, run.part(matched, run.end), LentSpan(hot, matched, run.end))
        for snapshot in lease.snapshots:
            if self._holdings.needs_snapshot or snapshot.logits is not None:
                node = tree.node_ending_at(tree.match(run, above), snapshot.num_tokens) or above
                assert node is not None
                _attach(node, snapshot)
                node.last_used = self._holdings.clock
        below = [step.node for step in tree.match(run, above)]
        for node in below:
            if node.end > matched:
                node.last_used = self._holdings.clock
        for node in (*ancestry(above), *below):
            node.users.add(hot.conversation_id)
            # The hot cache also holds the K/V of this node. Reference the hot cache, and free the
            # node's own arrays.
            if isinstance(node.span, KvArrays):
                node.span = LentSpan(hot, node.start, node.end)

    def _restored_node(self, lease: Lease) -> KvNode | None:
        """Return the deepest node that lies completely within the restored tokens of a lease.

        None if there is no such node, or if the locked node of the lease was removed.
        """
        if lease.locked is None or lease.locked.is_removed:
            return None
        held = min(lease.restored, lease.hot.num_tokens)
        return next((node for node in ancestry(lease.locked) if node.end <= held), None)

    def copy_out(self, hot: HotCache, num_tokens: int) -> tuple[list[KvNode], list[KvNode]]:
        """Remove all references from the tree to a hot cache's tokens after num_tokens.

        A useful node gets a copy of its K/V, or references another parked cache with the same
        tokens. A node that no request can resume from (a dead end) is removed.

        Returns:
            The removed nodes, leaves first, and the kept nodes, parents first.
        """
        lent = self._lent_beyond(hot, num_tokens)
        kept = list(self._holdings.useful_nodes(lent))
        removed = lent[len(kept) :][::-1]
        for node in removed:
            self._holdings.tree.remove(node)
        other, agreed = self._other_holder(hot) if kept else (None, 0)
        for node in reversed(kept):
            if other is not None and node.end <= agreed:
                node.span = LentSpan(other, node.start, node.end)
            else:
                node.span = LentSpan(hot, node.start, node.end).copied()
                self._holdings.counters.copied_bytes += node.span.nbytes
        return removed, kept

    def drop_beyond(self, hot: HotCache, num_tokens: int) -> None:
        """Remove the subtrees of the nodes that reference a hot cache's tokens after num_tokens."""
        for node in self._lent_beyond(hot, num_tokens)[:1]:
            self._holdings.tree.remove_subtree(node)

    def withdraw(self, hot: HotCache) -> int:
        """Remove the nodes that reference a hot cache, and all nodes below them.

        The caller will discard the hot cache. If another parked cache holds the tokens of a node,
        the node is kept and references the other cache.

        Returns:
            Number of leading tokens of the hot cache that are still in the tree.
        """
        lent = self._lent_beyond(hot, 0)
        other, agreed = self._other_holder(hot) if lent else (None, 0)
        for node in lent:
            if other is None or node.end > agreed:
                self._holdings.tree.remove_subtree(node)
                return node.start
            node.span = LentSpan(other, node.start, node.end)
        return hot.num_tokens

    def is_in_use(self, hot: HotCache) -> bool:
        """Return True if a running request has locked a node that references a hot cache."""
        return any(node.lock_count for node in self._lent_beyond(hot, 0))

    def _lent_beyond(self, hot: HotCache, num_tokens: int) -> list[KvNode]:
        """Return the nodes that reference a hot cache's tokens after num_tokens, parents first.

        A node that contains the position num_tokens is split at this position first.
        """
        if num_tokens >= hot.num_tokens:
            return []
        path = [step.node for step in self._holdings.tree.match(hot.run)]
        nodes = [node for node in path if node.end > num_tokens and lender(node) is hot]
        if nodes and nodes[0].start < num_tokens:
            self._holdings.tree.split(nodes[0], num_tokens - nodes[0].start)
        return nodes

    def _other_holder(self, hot: HotCache) -> tuple[HotCache | None, int]:
        """Return the other parked cache with the longest common prefix, and the prefix length.

        A token is common to two caches if its id and the pass that computed it are the same.
        """
        run = hot.run
        ends = [
            (common_end(run, other.run), other)
            for other in self._holdings.parked.values()
            if other is not hot
        ]
        agreed, other = max(ends, key=lambda end: end[0], default=(0, None))
        return other, agreed


def _attach(node: KvNode, snapshot: Snapshot) -> None:
    assert node.end == snapshot.num_tokens
    known = node.snapshot
    if known is None or (known.logits is None and snapshot.logits is not None):
        node.snapshot = snapshot
    elif known.kind in (PointKind.STRIDE, PointKind.BRANCH):
        known.kind = snapshot.kind
