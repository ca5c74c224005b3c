"""The ids that stand for a picture in the token ids of a prompt.

A picture takes as many tokens as the model has embeddings for it. Its ids are made from the hash of
its pixels, and no vocabulary has them. So two prompts share the tokens of a picture only if their
pictures are the same to the last pixel, and all code that compares token ids works for pictures
too.

    bit 31       set in every id of a picture
    bit 30       set in the first id of a picture
    last id      bits 20 to 29: number of positions that the picture takes, or 0 for one a token
    all ids      the other bits are bits of the hash; bit 0 of the first id is 0

Cached state is shared up to the first id that differs. So the first id has as many bits of the hash
as
possible: with 20 bits, two of 1,000 pictures would share the state of their first token in 4 of 10
    cases.

Some models count positions in another way than tokens: a picture of 6 x 10 tokens takes 10
positions of Qwen3.5's rotary embedding. The number is part of the ids, so token ids alone give the
position of the next token. Pure functions.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

PICTURE_ID: Final = 1 << 31  # the smallest id of a picture
_FIRST: Final = 1 << 30
MAX_POSITIONS: Final = (1 << 10) - 1
_POSITIONS_SHIFT: Final = 20
_HASH: Final = _FIRST - 1
_FIRST_HASH: Final = _HASH - 1  # without bit 0: no token may have the id 0xFFFFFFFF
_LAST_HASH: Final = (1 << _POSITIONS_SHIFT) - 1


@dataclass(frozen=True, slots=True)
class PictureSpan:
    """The range of token ids that stands for one picture."""

    start: int
    end: int
    num_positions: int  # number of positions that the picture takes


def picture_ids(identity: str, num_tokens: int, num_positions: int = 0) -> tuple[int, ...]:
    """Return the ids of a picture.

    Args:
        identity: text that tells the picture apart from all others: the hash of its pixels, and the
            form in which the model gets it.
        num_tokens: number of ids, at least 1.
        num_positions: number of positions that the picture takes, at most MAX_POSITIONS; 0 for one
            a token.
    """
    assert 0 <= num_positions <= MAX_POSITIONS
    digest = hashlib.shake_256(identity.encode()).digest(4 * num_tokens)
    ids = [PICTURE_ID | bits & _HASH for bits in struct.unpack(f"<{num_tokens}I", digest)]
    ids[0] = PICTURE_ID | _FIRST | ids[0] & _FIRST_HASH
    ids[-1] = ids[-1] & ~(_HASH ^ _LAST_HASH) | num_positions << _POSITIONS_SHIFT
    return tuple(ids)


def has_pictures(token_ids: Sequence[int]) -> bool:
    return max(token_ids, default=0) >= PICTURE_ID


def picture_spans(token_ids: Sequence[int]) -> Iterator[PictureSpan]:
    """Yield the pictures in token ids, in order."""
    if not has_pictures(token_ids):
        return
    start = -1  # start of the open span
    for index, token_id in enumerate((*token_ids, 0)):
        if start >= 0 and (token_id < PICTURE_ID or token_id & _FIRST):
            positions = token_ids[index - 1] >> _POSITIONS_SHIFT & MAX_POSITIONS
            yield PictureSpan(start, index, positions or index - start)
            start = -1
        if token_id >= PICTURE_ID and token_id & _FIRST:
            start = index


def position_shift(token_ids: Sequence[int]) -> int:
    """Return the position of the token after token_ids, minus the number of token_ids."""
    return sum(span.num_positions - (span.end - span.start) for span in picture_spans(token_ids))


def before_picture(token_ids: Sequence[int], end: int) -> int:
    """Return `end`, or the start of the picture that a cut at `end` would divide."""
    while end < len(token_ids) and token_ids[end] >= PICTURE_ID and not token_ids[end] & _FIRST:
        end -= 1
    return end


def without_pictures(token_ids: Sequence[int]) -> list[int]:
    """Return the ids that a vocabulary has."""
    return [token_id for token_id in token_ids if token_id < PICTURE_ID]
