"""Nodes of the tree borrow K/V from live caches; here it is copied out before a cache is overwritten."""

from __future__ import annotations

from collections.abc import Mapping

from engine.cache.hot import HotCache, KvNode, KvTree, LentSpan, is_point
from engine.cache.radix import common_end
from engine.types import ConversationId


class Lending:
    """Keeps the promise that a borrowed span holds its tokens for as long as its node lives."""

    def __init__(
        self, tree: KvTree, parked: Mapping[ConversationId, HotCache], *, needs_snapshot: bool
    ) -> None:
        self._tree = tree
        self._parked = parked
        self._needs_snapshot = needs_snapshot

    def copy_out(self, hot: HotCache, n_tokens: int) -> int:
        """Let no node borrow from hot beyond n_tokens any more: what is of use is copied.

        Returns:
            Bytes copied.
        """
        lent = self._lent_beyond(hot, n_tokens)
        other, agreed = self._other_holder(hot) if lent else (None, 0)
        copied = 0
        for node, span in reversed(lent):
            if self.is_dead_end(node):
                self._tree.remove(node)
            elif other is not None and node.end <= agreed:
                node.span = LentSpan(other, node.start, node.end)
            else:
                node.span = span.copied()
                copied += node.span.nbytes
        return copied

    def drop_beyond(self, hot: HotCache, n_tokens: int) -> None:
        """Remove what borrows from hot beyond n_tokens, with all below."""
        for node, _ in self._lent_beyond(hot, n_tokens)[:1]:
            self._tree.remove_subtree(node)

    def withdraw(self, hot: HotCache) -> int:
        """Take a lost cache out: who borrows from it goes, with all below, unless another holds the same.

        Returns:
            The tokens of its that are still there.
        """
        lent = self._lent_beyond(hot, 0)
        other, agreed = self._other_holder(hot) if lent else (None, 0)
        for node, _ in lent:
            if other is None or node.end > agreed:
                self._tree.remove_subtree(node)
                return node.start
            node.span = LentSpan(other, node.start, node.end)
        return hot.n_tokens

    def lends_to_requests(self, hot: HotCache) -> bool:
        """Whether a node that a request is using borrows from hot."""
        return any(node.lock_count for node, _ in self._lent_beyond(hot, 0))

    def is_dead_end(self, node: KvNode) -> bool:
        """Whether nothing can be restored from a node or below it, and no request is using it."""
        leads_on = is_point(node, needs_snapshot=self._needs_snapshot) or node.children
        return not leads_on and node.lock_count == 0

    def _lent_beyond(self, hot: HotCache, n_tokens: int) -> list[tuple[KvNode, LentSpan]]:
        """The nodes that borrow from hot beyond n_tokens, parents first; none reaches across it."""
        path = [step.node for step in self._tree.match(hot.run) if step.node.end > n_tokens]
        nodes = [node for node in path if _is_lent(node, hot)]
        if nodes and nodes[0].start < n_tokens:
            self._tree.split(nodes[0], n_tokens - nodes[0].start)
        return [(node, node.span) for node in nodes if isinstance(node.span, LentSpan)]

    def _other_holder(self, hot: HotCache) -> tuple[HotCache | None, int]:
        """The parked cache that agrees longest with hot, in feeding too, and how far."""
        run = hot.run
        ends = [(common_end(run, o.run), o) for o in self._parked.values() if o is not hot]
        agreed, other = max(ends, key=lambda end: end[0], default=(0, None))
        return other, agreed


def _is_lent(node: KvNode, hot: HotCache) -> bool:
    return isinstance(node.span, LentSpan) and node.span.hot is hot
