"""How many bytes are held, and what is given up first. Decides only; prefix_cache.py acts.

In this order, the least recently used first within each: stride points, prompt ends of other than
the newest conversation, whole ends of conversations and parked caches, points inside conversations,
system prompts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from engine.cache.hot import HotCache, KvSpan
from engine.cache.kv import KvArrays
from engine.cache.radix import Node
from engine.cache.snapshot import Snapshot
from engine.chat.prompt import PointKind


@dataclass(frozen=True, slots=True)
class Ledger:
    """Bytes held by the prefix cache; lent spans count with the hot cache that they lie in."""

    kv_bytes: int
    snapshot_bytes: int
    hot_bytes: int

    @property
    def total_bytes(self) -> int:
        return self.kv_bytes + self.snapshot_bytes + self.hot_bytes


@dataclass(frozen=True, slots=True)
class DropSnapshot:
    """Give up a node's snapshot, keep its K/V."""

    node: Node[KvSpan, Snapshot]


@dataclass(frozen=True, slots=True)
class DropNode:
    """Give up a leaf node altogether."""

    node: Node[KvSpan, Snapshot]


@dataclass(frozen=True, slots=True)
class GiveUpHot:
    """Give up a parked cache; what lies in it moves to arrays of its own."""

    hot: HotCache


Victim = DropSnapshot | DropNode | GiveUpHot

_LEAF_RANK = 2
_SNAPSHOT_RANK = {
    PointKind.STRIDE: 0,
    PointKind.PROMPT: 1,
    PointKind.BRANCH: 3,
    PointKind.TURN: 3,
    PointKind.TAIL: 3,
    PointKind.SYSTEM: 4,
}


def next_victim(
    nodes: Iterable[Node[KvSpan, Snapshot]], parked: Iterable[HotCache]
) -> Victim | None:
    """What to give up next, None if requests use all that is left."""
    unlocked = [node for node in nodes if not node.lock_count]
    ranked = min(_candidates(unlocked, parked), key=lambda c: (c.rank, c.last_used), default=None)
    return ranked.victim if ranked else None


@dataclass(frozen=True, slots=True)
class _Candidate:
    rank: int
    last_used: int
    victim: Victim


def _candidates(
    nodes: Sequence[Node[KvSpan, Snapshot]], parked: Iterable[HotCache]
) -> Iterator[_Candidate]:
    newest = max((node.last_used for node in nodes), default=0)
    for hot in parked:
        yield _Candidate(_LEAF_RANK, hot.last_used, GiveUpHot(hot))
    for node in nodes:
        if node.snapshot is not None and node.snapshot.nbytes:
            kind = node.snapshot.kind
            is_active = kind is PointKind.PROMPT and node.last_used == newest
            rank = _SNAPSHOT_RANK[PointKind.TURN if is_active else kind]
            yield _Candidate(rank, node.last_used, DropSnapshot(node))
        if not node.children and isinstance(node.span, KvArrays):
            yield _Candidate(_LEAF_RANK, node.last_used, DropNode(node))
