"""Is a stored point still what its passes give? Compared with caches that were fed the same again."""

from __future__ import annotations

import mlx.core as mx

from engine.cache import kv
from engine.cache.hot import KvNode
from engine.cache.layout import Leaves
from engine.cache.radix import ancestry
from engine.cache.trees import arrays_in

# The same passes give the same bits on a CPU. A GPU may sum in another order now and then; what a
# wrong state gives is above 2e-2.
MARGIN = 1e-3


def differs(node: KvNode, fresh: Leaves) -> bool:
    """Whether K/V or state of the path to node's end is not what fresh caches hold there."""
    for ancestor in ancestry(node):
        stored = ancestor.span.range(0, ancestor.span.n_tokens)
        if _difference(stored, kv.read_range(fresh.kv, ancestor.start, ancestor.end)) > MARGIN:
            return True
    if node.snapshot is None:
        return False
    return _difference(node.snapshot.states, [leaf.state for leaf in fresh.aux]) > MARGIN


def _difference(stored: object, fresh: object) -> float:
    """The largest difference of two trees of arrays, relative to each array's deviation."""
    ours, theirs = list(arrays_in(stored)), list(arrays_in(fresh))
    if [array.shape for array in ours] != [array.shape for array in theirs]:
        return float("inf")
    return max((_array_difference(a, b) for a, b in zip(ours, theirs, strict=True)), default=0.0)


def _array_difference(stored: mx.array, fresh: mx.array) -> float:
    if mx.array_equal(stored, fresh, equal_nan=True).item():
        return 0.0
    if not mx.issubdtype(stored.dtype, mx.floating):
        return float("inf")
    difference = mx.max(mx.abs(stored - fresh)) / mx.std(fresh)
    value = difference.astype(mx.float32).item()
    assert isinstance(value, float)
    return value if value == value else float("inf")  # not a number: something is broken
