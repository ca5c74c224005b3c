"""Cutting of a prompt into chunks for prefill. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.cache.points import PointKind, ResumePoint

# The LM head runs over the whole last chunk: a long one is cut so that few rows are wasted.
_LAST_LEN = 16
_LONG_LAST = 64


@dataclass(frozen=True, slots=True)
class Chunk:
    """Feed up to token `end`, then keep a snapshot there if `kind` says what for."""

    end: int
    kind: PointKind | None


def plan_chunks(
    start: int,
    points: Sequence[ResumePoint],
    *,
    num_tokens: int,
    cell_len: int,
    stride_len: int,
) -> list[Chunk]:
    """Return the chunks of prompt[start:num_tokens]: cut at every point and at multiples of cell_len.

    Where they end does not depend on how busy the engine is or, but for a BRANCH point, on what
    was restored: a restored prompt is cut like a cold one. points include the prompt's end.
    """
    kinds: dict[int, PointKind | None] = dict.fromkeys(range(cell_len, num_tokens, cell_len))
    kinds |= dict.fromkeys(range(stride_len, num_tokens, stride_len), PointKind.STRIDE)
    kinds |= {point.num_tokens: point.kind for point in points}
    last_start = max((end for end in kinds if end < num_tokens), default=0)
    if num_tokens - last_start > _LONG_LAST:
        kinds[num_tokens - _LAST_LEN] = None
    return [Chunk(end, kinds[end]) for end in sorted(kinds) if end > start]
