"""The bytes that are held and what can be given up of them: the words that a policy decides in.

The order itself is coverage.py's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set as AbstractSet
from dataclasses import dataclass

from engine.cache.hot import HotCache, KvNode
from engine.cache.snapshot import Snapshot
from engine.chat.prompt import PointKind
from engine.types import ConversationId


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
class DropLogits:
    """Give up the logits kept with a prompt's end, keep the state."""

    node: KvNode


@dataclass(frozen=True, slots=True)
class DropSnapshot:
    """Give up a node's snapshot; its K/V stays while something below needs it."""

    node: KvNode


@dataclass(frozen=True, slots=True)
class DropNode:
    """Give up a leaf node altogether."""

    node: KvNode


@dataclass(frozen=True, slots=True)
class GiveUpHot:
    """Give up a parked cache; what lies in it and is of use moves to arrays of its own."""

    hot: HotCache


Victim = DropLogits | DropSnapshot | DropNode | GiveUpHot


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """All that is held after `now` turns."""

    nodes: Sequence[KvNode]  # parents before children
    parked: Sequence[HotCache]
    pinned: AbstractSet[ConversationId]
    needs_snapshot: bool
    kv_bytes_per_token: int
    now: int


# Names what goes next. Each is given up before the next one is asked for.
Policy = Callable[[Holdings], Iterator[Victim]]

# How likely a request goes on from a point, next to the end of a reply. Found with
# tests/benchmarks/eviction.py and flat there: half or double of one changes what is fed by a few percent.
LIKELIHOOD = {
    PointKind.STRIDE: 0.2,
    PointKind.PROMPT: 0.2,
    PointKind.BRANCH: 1.0,
    PointKind.TURN: 1.0,
    PointKind.TAIL: 1.0,
    PointKind.SYSTEM: 1.0,
}


def least_point(points: Sequence[Snapshot]) -> Snapshot | None:
    """Of a running request's points, in order, all but the newest: the one that covers least."""
    starts = [0, *(point.num_tokens for point in points)]
    costs = [
        LIKELIHOOD[point.kind] * (point.num_tokens - start)
        for start, point in zip(starts, points[:-1], strict=False)
    ]
    return points[costs.index(min(costs))] if costs else None
