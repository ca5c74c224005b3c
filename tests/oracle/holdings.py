"""The bytes that a prefix cache at rest holds, counted from its arrays instead of its ledger."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from engine.cache.holdings import Ledger
from engine.cache.kv import KvArrays
from engine.cache.layout import is_kv, leaves_of
from engine.cache.prefix_cache import PrefixCache
from engine.cache.trees import arrays_in
from engine.types import ConversationId


def real_bytes(cache: PrefixCache, chats: Iterable[str]) -> Ledger:
    """Return the bytes of all arrays of a cache at rest; assert that no array is held twice."""
    nodes = list(cache.holdings.tree.nodes())
    parked = [hot for chat in chats if (hot := cache.holdings.parked.get(ConversationId(chat)))]
    kv_leaves = [leaf for hot in parked for leaf in leaves_of(hot.caches) if is_kv(leaf)]
    buffers = [(leaf.keys, leaf.values) for leaf in kv_leaves]
    spans = [node.span.leaves for node in nodes if isinstance(node.span, KvArrays)]
    snapshots = [(node.snapshot.states, node.snapshot.logits) for node in nodes if node.snapshot]
    arrays = list(arrays_in([spans, snapshots, buffers]))
    assert len({id(array) for array in arrays}) == len(arrays)
    return Ledger(
        kv_bytes=sum(array.nbytes for array in arrays_in(spans)),
        snapshot_bytes=sum(array.nbytes for array in arrays_in(snapshots)),
        hot_bytes=sum(array.nbytes for array in arrays_in(buffers)),
    )


def fingerprint(cache: PrefixCache | None) -> object:
    """Return the nodes and statistics of a cache, which a side request must leave unchanged."""
    if cache is None:
        return None
    nodes = [
        (node.end, node.last_used, frozenset(node.users)) for node in cache.holdings.tree.nodes()
    ]
    return nodes, replace(cache.statistics(), matches=0, copied_bytes=0)
