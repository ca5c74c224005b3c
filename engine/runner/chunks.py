"""Division of a prompt into chunks for prefill. Pure Python, without mlx."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.cache.points import PointKind, ResumePoint

# mlx-lm runs the LM head over every position of the last chunk, but only the last logits are used.
# A last chunk longer than _LONG_LAST is cut _LAST_LEN tokens before its end.
_LAST_LEN = 16
_LONG_LAST = 64


@dataclass(frozen=True, slots=True)
class Chunk:
    """The part of a prompt up to token `end`, fed in one forward pass."""

    end: int
    kind: PointKind | None  # kind of the snapshot to keep at `end`, None for no snapshot


def plan_chunks(
    start: int,
    points: Sequence[ResumePoint],
    *,
    num_tokens: int,
    cell_len: int,
    stride_len: int,
) -> list[Chunk]:
    """Return the chunks of prompt[start:num_tokens], cut at every point and every cell_len tokens.

    The ends depend neither on the load of the engine nor on what was restored (BRANCH points
    excepted): a restored prompt is cut like a cold one, so that both have the same rounding.

    Args:
        start: number of tokens that the caches hold already.
        points: the positions to keep a snapshot at, including the end of the prompt.
        num_tokens: length of the prompt.
        cell_len: largest length of a chunk.
        stride_len: distance between STRIDE snapshots.
    """
    kinds: dict[int, PointKind | None] = dict.fromkeys(range(cell_len, num_tokens, cell_len))
    kinds |= dict.fromkeys(range(stride_len, num_tokens, stride_len), PointKind.STRIDE)
    kinds |= {point.num_tokens: point.kind for point in points}
    last_start = max((end for end in kinds if end < num_tokens), default=0)
    if num_tokens - last_start > _LONG_LAST:
        kinds[num_tokens - _LAST_LEN] = None
    return [Chunk(end, kinds[end]) for end in sorted(kinds) if end > start]
