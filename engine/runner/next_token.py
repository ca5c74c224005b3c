"""The draw of a sequence's next token from its token source (drawing.py). Engine thread only."""

from __future__ import annotations

from collections.abc import Sequence as Items

import mlx.core as mx

from engine.models.filters import PENALTY_WINDOW
from engine.runner.sequence import Sequence


def draw_next(sequence: Sequence, logits: mx.array, drafts: Items[int | mx.array] = ()) -> mx.array:
    """Draw a token lazily, from the logits (V,) after a reply's newest token and some drafts.

    drafts: token ids, or lazy scalars if they are not read yet.
    """
    # `source` samples the token, or returns the next token of a given reply. Count from the
    # beginning of the whole reply, so that a continued reply gets the same tokens as an
    # uninterrupted one.
    index = len(sequence.reply.token_ids) + (sequence.drawn is not None) + len(drafts)
    return sequence.source.draw(logits, lambda: _recent(sequence, drafts), index=index)


def read_token(drawn: mx.array) -> int:
    """Wait until a drawn token is computed. Return its id."""
    token_id = drawn.item()
    assert isinstance(token_id, int)
    return token_id


def _recent(sequence: Sequence, drafts: Items[int | mx.array]) -> mx.array:
    """Return the last PENALTY_WINDOW token ids of a sequence and its drafts.

    Tokens that are drawn but not yet read are included.
    """
    # Do not use sequence.output_ids: it copies the whole output, which grows with every token.
    num_new, reply_ids = min(sequence.num_output, PENALTY_WINDOW), sequence.reply.token_ids
    token_ids = [
        *sequence.prompt.token_ids[-PENALTY_WINDOW:],
        *reply_ids[len(reply_ids) - num_new :],
        *(draft for draft in drafts if isinstance(draft, int)),
    ]
    recent = mx.array(token_ids[-PENALTY_WINDOW:], mx.int32)
    unread = [draft for draft in (sequence.drawn, *drafts) if isinstance(draft, mx.array)]
    if not unread:
        return recent
    newest = mx.stack(unread).astype(mx.int32)
    return mx.concatenate([recent, newest])[-PENALTY_WINDOW:]
