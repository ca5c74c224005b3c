"""Resume points: token positions [0, n) whose cached state a later request can start from.

No mlx here: prompts are built and cut into chunks without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar


class PointKind(StrEnum):
    """Why a snapshot is taken; decides with other figures how soon it may be evicted."""

    SYSTEM = "system"  # where the first user message's text begins
    TURN = "turn"  # where a later user or tool text begins, or where the next turn may diverge
    PROMPT = "prompt"  # the end of the prompt, with its logits
    TAIL = "tail"  # after a reply, where the next user message's text will begin
    BRANCH = "branch"  # where a match continued in K/V but not in snapshots
    STRIDE = "stride"  # at fixed distances in a long prefill, and where a draft or idle work ended


# Likelihood that a request resumes at a point, relative to the end of a reply. Found with
# tests/benchmarks/eviction.py and flat there: half or double of one changes the tokens fed by a few percent.
LIKELIHOOD = {
    PointKind.STRIDE: 0.2,
    PointKind.PROMPT: 0.2,
    PointKind.BRANCH: 1.0,
    PointKind.TURN: 1.0,
    PointKind.TAIL: 1.0,
    PointKind.SYSTEM: 1.0,
}


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """A token position worth a snapshot."""

    num_tokens: int
    kind: PointKind


class _AtPoint(Protocol):
    @property
    def num_tokens(self) -> int: ...

    @property
    def kind(self) -> PointKind: ...


_P = TypeVar("_P", bound=_AtPoint)


def least_valuable(points: Sequence[_P]) -> _P | None:
    """Return the point of a running request that saves the fewest tokens; never the newest one.

    Args:
        points: the request's points or snapshots, in order.
    """
    starts = [0, *(point.num_tokens for point in points)]
    values = [
        LIKELIHOOD[point.kind] * (point.num_tokens - start)
        for start, point in zip(starts, points[:-1], strict=False)
    ]
    return points[values.index(min(values))] if values else None
