"""The draw of a sequence's next tokens from its token source (drawing.py). Engine thread only."""

from __future__ import annotations

from collections.abc import Sequence as Items

import mlx.core as mx
from typing_extensions import override

from engine.models.filters import PENALTY_WINDOW
from engine.picture_ids import without_pictures
from engine.runner.drawing import TokensBefore
from engine.runner.sequence import Sequence


def draw_next(sequence: Sequence, logits: mx.array, drafts: Items[int | mx.array] = ()) -> mx.array:
    """Draw a token lazily, from the logits (V,) after a reply's newest token and some drafts.

    drafts: token ids, or lazy scalars if they are not read yet.
    """
    # `source` samples the token, or returns the next token of a given reply. Count from the
    # beginning of the whole reply, so that a continued reply gets the same tokens as an
    # uninterrupted one.
    index = len(sequence.reply.token_ids) + (sequence.drawn is not None) + len(drafts)
    return sequence.source.draw(logits, _Before(sequence, drafts), index=index)


def draw_confirmed(sequence: Sequence, logits: mx.array, drafts: Items[int]) -> list[int]:
    """Draw and read tokens until one differs from its draft. Return these tokens.

    Args:
        sequence: the sequence.
        logits: the logits after the newest token and after each draft, of shape (L, V).
        drafts: the drafts that were fed after the newest token of the reply.
    """
    token_ids: list[int] = []
    for position in range(len(drafts) + 1):
        # Read each token before the next one is drawn: the filters of tokens after a wrong
        # draft would be computed in vain.
        drawn = draw_next(sequence, logits[position], drafts[:position])
        token_ids.append(read_token(drawn))
        if position < len(drafts) and token_ids[-1] != drafts[position]:
            break
    return token_ids


def read_token(drawn: mx.array) -> int:
    """Wait until a drawn token is computed. Return its id."""
    token_id = drawn.item()
    assert isinstance(token_id, int)
    return token_id


class _Before(TokensBefore):
    """The tokens of a sequence and its drafts, including those that are drawn but not read yet."""

    def __init__(self, sequence: Sequence, drafts: Items[int | mx.array]) -> None:
        self._sequence = sequence
        self._read = [draft for draft in drafts if isinstance(draft, int)]
        newest = (sequence.drawn, *drafts)
        self._unread = [token for token in newest if isinstance(token, mx.array)]

    @override
    def recent(self) -> mx.array:
        # Do not use sequence.output_ids: it copies the whole output, which grows with every token.
        reply_ids = self._sequence.reply.token_ids
        num_new = min(self._sequence.num_output, PENALTY_WINDOW)
        token_ids = [
            *self._sequence.prompt.token_ids[-PENALTY_WINDOW:],
            *reply_ids[len(reply_ids) - num_new :],
            *self._read,
        ]
        num_read = PENALTY_WINDOW - len(self._unread)
        recent = mx.array(without_pictures(token_ids[-num_read:]), mx.int32)
        if not self._unread:
            return recent
        return mx.concatenate([recent, mx.stack(self._unread).astype(mx.int32)])

    @override
    def answer_ids(self) -> list[int] | None:
        answer_ids = None if self._unread else self._sequence.reply.answer_ids
        return None if answer_ids is None else [*answer_ids, *self._read]
