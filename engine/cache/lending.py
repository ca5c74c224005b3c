"""Nodes of the tree borrow K/V from live caches; here it is copied out before a cache is overwritten."""

from __future__ import annotations

from collections.abc import Mapping

from engine.cache.hot import HotCache, KvNode, KvTree, LentSpan
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
        if n_tokens == hot.n_tokens:
            return 0
        run = hot.run
        self._tree.node_ending_at(self._tree.match(run), n_tokens)
        other, agreed = self._other_holder(hot)
        copied = 0
        for step in reversed(self._tree.match(run)):
            node, span = step.node, step.node.span
            if not isinstance(span, LentSpan) or span.hot is not hot or node.end <= n_tokens:
                continue
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
        self._tree.node_ending_at(self._tree.match(hot.run), n_tokens)
        for step in self._tree.match(hot.run):
            node, span = step.node, step.node.span
            if node.start >= n_tokens and isinstance(span, LentSpan) and span.hot is hot:
                self._tree.remove_subtree(node)
                return

    def withdraw(self, hot: HotCache) -> None:
        """Take a lost cache out: who borrows from it goes, with all below, unless another holds the same."""
        other, agreed = self._other_holder(hot)
        for step in self._tree.match(hot.run):
            node, span = step.node, step.node.span
            if not isinstance(span, LentSpan) or span.hot is not hot:
                continue
            if other is None or node.end > agreed:
                self._tree.remove_subtree(node)
                return
            node.span = LentSpan(other, node.start, node.end)

    def is_dead_end(self, node: KvNode) -> bool:
        """Whether nothing can be restored from a node or below it, and no request is using it."""
        is_point = node.snapshot is not None or not self._needs_snapshot
        return not is_point and not node.children and node.lock_count == 0

    def _other_holder(self, hot: HotCache) -> tuple[HotCache | None, int]:
        """The parked cache that agrees longest with hot, in feeding too, and how far."""
        run = hot.run
        ends = [(common_end(run, o.run), o) for o in self._parked.values() if o is not hot]
        agreed, other = max(ends, key=lambda end: end[0], default=(0, None))
        return other, agreed
