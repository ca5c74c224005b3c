"""An idle job that checks the cache: it recomputes the state at a resume point and compares it.

idle.py starts this job from time to time. If the stored state differs, it is removed from the
cache.
"""

from __future__ import annotations

import logging
from typing import Self

import mlx.core as mx

from engine.cache import kv
from engine.cache.holdings import Lease
from engine.cache.hot import KvNode
from engine.cache.layout import Leaves
from engine.cache.prefix_cache import PrefixCache
from engine.cache.radix import ancestry, path_run
from engine.cache.trees import arrays_in
from engine.checking.replay import replay
from engine.cleanup import undo_on_error
from engine.events import IdleKind
from engine.models.compare import relative_difference, rounding_in
from engine.models.loader import LoadedModel

log = logging.getLogger(__name__)

# Largest relative difference that counts as rounding. It is above 0 because a GPU may add numbers
# in a different order each time. A wrong state differs by far more.
_MARGIN = 1e-3
# Largest share of packed integers (quantised K/V) that may differ because of rounding.
_INTEGERS_MARGIN = 0.05


class AuditJob:
    """The audit of one resume point. Each step repeats one of the original forward passes.

    The passes are repeated on new, empty caches. Their memory counts towards
    EngineConfig.head_room_bytes, not towards the prefix cache's budget.
    """

    conversation_id = None
    kind = IdleKind.AUDIT
    num_cached = 0
    reads_pictures = False

    def __init__(
        self,
        model: LoadedModel,
        cache: PrefixCache,
        node: KvNode,
        lease: Lease,
    ) -> None:
        self._cache = cache
        self._node = node
        self._lease = lease
        self._passes = replay(model.adapter, model.ways.rewinding, lease.hot.caches, path_run(node))
        # Logits of shape (V,) after the newest pass; None before the first pass.
        self._logits: mx.array | None = None
        self.total = node.end
        self.done = 0

    @classmethod
    def start(cls, model: LoadedModel, cache: PrefixCache, max_tokens: int) -> Self | None:
        """Return an audit of the resume point that has not been checked for the longest time.

        Return None if the cache has no resume point with at most max_tokens tokens.
        """
        adapter = model.adapter
        audit = cache.audits.start(adapter.new_caches, max_tokens, adapter.can_feed)
        return cls(model, cache, *audit) if audit is not None else None

    def step(self) -> bool:
        """Repeat one pass. If no pass is left, compare the resume point and return False."""
        with undo_on_error(self.stop):
            passed = next(self._passes, None)
            if passed is not None:
                self.done, logits = passed
                self._logits = logits[-1]
                return True
            wrong = _first_wrong(self._node, self._lease.hot.leaves, self._logits)
        if wrong is not None:
            log.error("an audit removes wrong cached state after token %d", wrong.start)
        self._cache.abandon(self._lease)
        self._cache.audits.record(self._node, wrong)
        return False

    def stop(self) -> None:
        """Stop the audit without a result. A later audit may check this resume point again."""
        self._cache.abandon(self._lease)


def _first_wrong(node: KvNode, fresh: Leaves, logits: mx.array | None) -> KvNode | None:
    """Return the first wrong node on the path to a resume point.

    A node is wrong if its stored state differs from the recomputed state. Return None if no node is
    wrong.

    Args:
        node: the node that ends at the resume point.
        fresh: the recomputed caches of the path.
        logits: the recomputed logits after the path's last token.
    """
    for ancestor in reversed(list(ancestry(node))):
        stored = ancestor.span.range(0, ancestor.span.num_tokens)
        if _differ(stored, kv.read_range(fresh, ancestor.start, ancestor.end)):
            return ancestor
    snapshot = node.snapshot
    if snapshot is None:
        return None
    is_wrong = _differ(snapshot.states, fresh.states)
    if snapshot.logits is not None and logits is not None:
        is_wrong = is_wrong or _differ(snapshot.logits, logits)
    return node if is_wrong else None


def _differ(stored: object, fresh: object) -> bool:
    ours, theirs = list(arrays_in(stored)), list(arrays_in(fresh))
    if [array.shape for array in ours] != [array.shape for array in theirs]:
        return True
    return any(_arrays_differ(a, b) for a, b in zip(ours, theirs, strict=True))


def _arrays_differ(stored: mx.array, fresh: mx.array) -> bool:
    if mx.array_equal(stored, fresh, equal_nan=True).item():
        return False
    if not mx.issubdtype(stored.dtype, mx.floating):
        share = mx.mean(stored != fresh).item()
        assert isinstance(share, float)
        return share > _INTEGERS_MARGIN
    return relative_difference(stored, fresh) > rounding_in(fresh, _MARGIN)
