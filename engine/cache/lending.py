"""Nodes of the tree borrow K/V from live caches; it is copied out before a cache is overwritten."""

from __future__ import annotations

from engine.cache.held import Held, Lease
from engine.cache.hot import HotCache, KvNode, LentSpan
from engine.cache.kv import KvArrays
from engine.cache.radix import ancestry, common_end
from engine.cache.snapshot import Snapshot
from engine.chat.prompt import PointKind


class Lending:
    """Keeps the promise that a borrowed span holds its tokens for as long as its node lives."""

    def __init__(self, held: Held) -> None:
        self._held = held

    def lend(self, lease: Lease) -> None:
        """Make nodes of all that a lease's caches hold, with the points that were kept on the way."""
        hot, tree = lease.hot, self._held.tree
        run, above = hot.run, self._restored_node(lease)
        path = tree.match(run, above)
        matched = path[-1].end if path else (above.end if above else 0)
        parent = tree.node_ending_at(path, matched) or above
        if matched < run.end:
            tree.append_leaf(parent, run.part(matched, run.end), LentSpan(hot, matched, run.end))
        for snapshot in lease.snapshots:
            if self._held.needs_snapshot or snapshot.logits is not None:
                node = tree.node_ending_at(tree.match(run, above), snapshot.num_tokens) or above
                assert node is not None
                _attach(node, snapshot)
                node.last_used = self._held.clock
        below = [step.node for step in tree.match(run, above)]
        for node in below:
            if node.end > matched:
                node.last_used = self._held.clock
        for node in (*ancestry(above), *below):
            node.users.add(hot.conversation_id)
            # Tokens that this cache holds too need no arrays of their own.
            if isinstance(node.span, KvArrays):
                node.span = LentSpan(hot, node.start, node.end)

    def _restored_node(self, lease: Lease) -> KvNode | None:
        """The deepest node of what was restored, None if that is not in the tree any more."""
        if lease.locked is None or lease.locked.is_removed:
            return None
        held = min(lease.restored, lease.hot.num_tokens)
        return next((node for node in ancestry(lease.locked) if node.end <= held), None)

    def copy_out(self, hot: HotCache, num_tokens: int) -> None:
        """Let no node borrow from hot beyond num_tokens any more: what is of use is copied."""
        lent = self._lent_beyond(hot, num_tokens)
        other, agreed = self._other_holder(hot) if lent else (None, 0)
        for node, span in reversed(lent):
            if self._held.is_dead_end(node):
                self._held.tree.remove(node)
            elif other is not None and node.end <= agreed:
                node.span = LentSpan(other, node.start, node.end)
            else:
                node.span = span.copied()
                self._held.counters.copied_bytes += node.span.nbytes

    def drop_beyond(self, hot: HotCache, num_tokens: int) -> None:
        """Remove what borrows from hot beyond num_tokens, with all below."""
        for node, _ in self._lent_beyond(hot, num_tokens)[:1]:
            self._held.tree.remove_subtree(node)

    def withdraw(self, hot: HotCache) -> int:
        """Take a lost cache out: who borrows from it goes, with all below, unless another holds the same.

        Returns:
            The tokens of its that are still there.
        """
        lent = self._lent_beyond(hot, 0)
        other, agreed = self._other_holder(hot) if lent else (None, 0)
        for node, _ in lent:
            if other is None or node.end > agreed:
                self._held.tree.remove_subtree(node)
                return node.start
            node.span = LentSpan(other, node.start, node.end)
        return hot.num_tokens

    def lends_to_requests(self, hot: HotCache) -> bool:
        """Whether a node that a request is using borrows from hot."""
        return any(node.lock_count for node, _ in self._lent_beyond(hot, 0))

    def _lent_beyond(self, hot: HotCache, num_tokens: int) -> list[tuple[KvNode, LentSpan]]:
        """The nodes that borrow from hot beyond num_tokens, parents first; none reaches across it."""
        if num_tokens >= hot.num_tokens:
            return []
        path = [step.node for step in self._held.tree.match(hot.run) if step.node.end > num_tokens]
        nodes = [node for node in path if borrows(node, hot)]
        if nodes and nodes[0].start < num_tokens:
            self._held.tree.split(nodes[0], num_tokens - nodes[0].start)
        return [(node, node.span) for node in nodes if isinstance(node.span, LentSpan)]

    def _other_holder(self, hot: HotCache) -> tuple[HotCache | None, int]:
        """The parked cache that agrees longest with hot, in feeding too, and how far."""
        run = hot.run
        ends = [(common_end(run, o.run), o) for o in self._held.parked.values() if o is not hot]
        agreed, other = max(ends, key=lambda end: end[0], default=(0, None))
        return other, agreed


def _attach(node: KvNode, snapshot: Snapshot) -> None:
    assert node.end == snapshot.num_tokens
    known = node.snapshot
    if known is None or (known.logits is None and snapshot.logits is not None):
        node.snapshot = snapshot
    elif known.kind in (PointKind.STRIDE, PointKind.BRANCH):
        known.kind = snapshot.kind


def borrows(node: KvNode, hot: HotCache) -> bool:
    """Whether a node's K/V lies in hot; then hot holds all of the path to its end."""
    return isinstance(node.span, LentSpan) and node.span.hot is hot
