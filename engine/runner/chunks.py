"""Division of a prompt into chunks for prefill. Pure Python, without mlx."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.cache.points import PointKind, ResumePoint
from engine.picture_ids import picture_spans

# mlx-lm runs the LM head over every position of the last chunk, but only the last logits are used.
# Therefore a last chunk of more than _LONG_LAST tokens is divided _LAST_LEN tokens before its end.
_LAST_LEN = 16
_LONG_LAST = 64


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a prompt that begins where the one before ends.

    Text is fed in one pass, a picture in several.
    """

    end: int
    kind: PointKind | None  # kind of the snapshot to keep at `end`; None for no snapshot


def plan_chunks(
    start: int,
    points: Sequence[ResumePoint],
    *,
    token_ids: Sequence[int],
    cell_len: int,
    stride_len: int,
) -> list[Chunk]:
    """Divide a prompt after `start` into chunks, cut at every point and every cell_len tokens.

    A picture is a chunk of its own. Except at BRANCH points, the cuts depend neither on the load of
    the engine nor on the number of restored tokens. A prompt is therefore cut at the same positions
    whether or not a part of it is restored, and rounds in the same way.

    Args:
        start: number of tokens that the caches hold already.
        points: the positions at which to keep a snapshot, including the end of the prompt.
        token_ids: the token ids of the prompt.
        cell_len: largest length of a chunk.
        stride_len: distance between STRIDE snapshots.
    """
    num_tokens = len(token_ids)
    kinds: dict[int, PointKind | None] = dict.fromkeys(range(cell_len, num_tokens, cell_len))
    kinds |= dict.fromkeys(range(stride_len, num_tokens, stride_len), PointKind.STRIDE)
    kinds |= {point.num_tokens: point.kind for point in points}
    last_start = max((end for end in kinds if end < num_tokens), default=0)
    if num_tokens - last_start > _LONG_LAST:
        kinds[num_tokens - _LAST_LEN] = None
    for picture in picture_spans(token_ids):
        for inside in range(picture.start + 1, picture.end):
            kinds.pop(inside, None)
        kinds.setdefault(picture.start, None)
        kinds.setdefault(picture.end, None)
    return [Chunk(end, kinds[end]) for end in sorted(kinds) if end > start]
