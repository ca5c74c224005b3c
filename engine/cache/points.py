"""Resume points: positions n at which a later request can start from cached state of tokens [0, n).

This module imports no mlx, so that prompts can be built and divided into chunks without mlx.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar


class PointKind(StrEnum):
    """Reason why a snapshot is kept. The kind affects how soon the snapshot is evicted."""

    SYSTEM = "system"  # end of the system prompt: before the text of the first user message
    # Before the text of a later user or tool message, or where the next turn's prompt may differ
    # from this prompt.
    TURN = "turn"
    PROMPT = "prompt"  # end of the prompt; the logits are kept too
    TAIL = "tail"  # after a reply, where the text of the next user message will begin
    # End of the stored K/V that matches a prompt, or the position at which a prefill was stopped.
    BRANCH = "branch"
    # Every stride_len tokens in a long prefill, or the end of a draft or of idle work.
    STRIDE = "stride"


# Likelihood that a request resumes at a point of each kind. A point at the end of a reply has 1.
# The values were chosen with tests/benchmarks/eviction.py. Halving or doubling one value changes
# the number of fed tokens by only a few percent.
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
    """Return the point whose loss costs the fewest tokens. The newest point is never returned.

    The cost of losing a point is the number of tokens since the previous point, times LIKELIHOOD.

    Args:
        points: the resume points or snapshots of one request, in the order of their positions.

    Returns:
        None if there are fewer than two points.
    """
    starts = [0, *(point.num_tokens for point in points)]
    values = [
        LIKELIHOOD[point.kind] * (point.num_tokens - start)
        for start, point in zip(starts, points[:-1], strict=False)
    ]
    return points[values.index(min(values))] if values else None
