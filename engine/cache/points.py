"""Resume points: positions n at which a later request can start from cached state of tokens [0, n).

This module imports no mlx, because prompts are built and divided into chunks without mlx.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar


class PointKind(StrEnum):
    """Reason why a snapshot is kept. It decides, with other figures, how soon it may be evicted."""

    SYSTEM = "system"  # before the text of the first user message: the end of the system prompt
    TURN = "turn"  # before a later user or tool text, or where the next turn's prompt may diverge
    PROMPT = "prompt"  # the end of the prompt, with its logits
    TAIL = "tail"  # after a reply, where the text of the next user message will begin
    BRANCH = "branch"  # the end of matched K/V without a snapshot, or the end of a stopped prefill
    STRIDE = "stride"  # at fixed distances in a long prefill, or where a draft or idle work ended


# Likelihood that a request resumes at a point, relative to the end of a reply. Chosen with
# tests/benchmarks/eviction.py. The exact values matter little: half or double of one value changes
# the number of fed tokens by a few percent.
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
    """A position in a prompt at which to keep a snapshot."""

    num_tokens: int
    kind: PointKind


class _AtPoint(Protocol):
    @property
    def num_tokens(self) -> int: ...

    @property
    def kind(self) -> PointKind: ...


_P = TypeVar("_P", bound=_AtPoint)


def least_valuable(points: Sequence[_P]) -> _P | None:
    """Return the point of a running request whose loss costs the fewest tokens, but not the newest.

    The loss costs the tokens since the point before, weighted by LIKELIHOOD.

    Args:
        points: the request's resume points or snapshots, in the order of their positions.

    Returns:
        None if there are fewer than two points.
    """
    starts = [0, *(point.num_tokens for point in points)]
    values = [
        LIKELIHOOD[point.kind] * (point.num_tokens - start)
        for start, point in zip(starts, points[:-1], strict=False)
    ]
    return points[values.index(min(values))] if values else None
