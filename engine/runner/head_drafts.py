"""Drafts of the model's multi-token prediction head. Engine thread only.

The head guesses tokens from its state, which each forward pass of the model gives it. Decoder lets
the head draft before a pass that verifies drafts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence as Items
from functools import partial

import mlx.core as mx

from engine.cache.trees import evaluate_soon
from engine.errors import Failure, attempt
from engine.models.loader import LoadedModel
from engine.runner.batch import Batch
from engine.runner.drafting import Drafts
from engine.runner.next_token import draw_next, read_token
from engine.runner.sequence import Sequence


class HeadDrafter:
    """The head of a loaded model, for the sequences of a batch. It leaves the caches unchanged."""

    def __init__(self, model: LoadedModel, batch: Batch) -> None:
        self._adapter = model.adapter
        self._batch = batch

    def draft(
        self, sequences: Items[Sequence], counts: Mapping[Sequence, int]
    ) -> Mapping[Sequence, Drafts]:
        """Return as many drafts for each sequence as counts says.

        A draft is drawn like the token that it stands for, with the same filters and random key. If
        drafting raises an error, the sequence gets no drafts.

        sequences: all sequences that the next pass feeds.
        """
        drawn: dict[Sequence, list[mx.array]] = {}
        for sequence, count in counts.items():
            lazy = attempt("drafting", partial(self._draw, sequences, sequence, count))
            if not isinstance(lazy, Failure):
                drawn[sequence] = lazy
        evaluate_soon(list(drawn.values()))
        drafts: dict[Sequence, Drafts] = {}
        for sequence, lazy in drawn.items():
            read = attempt("drafting", lambda lazy=lazy: tuple(map(read_token, lazy)))
            if not isinstance(read, Failure):
                drafts[sequence] = read
        return drafts

    def states(self, sequences: Iterable[Sequence]) -> list[object]:
        """Return the arrays of the head's states after the newest pass. [] without a head.

        No logits depend on them. If they stayed lazy, they would keep the hidden states of all
        passes in memory, and would be computed at once when a draft or a snapshot needs them.
        """
        if not self._adapter.has_head:
            return []
        return [self._batch.head_state(sequence).arrays for sequence in sequences]

    def _draw(
        self, sequences: Items[Sequence], sequence: Sequence, num_drafts: int
    ) -> list[mx.array]:
        self._batch.regroup(list(sequences))

        def draw(logits: mx.array, drafts: Items[mx.array]) -> mx.array:
            return draw_next(sequence, logits, drafts)

        state = self._batch.head_state(sequence)
        return self._adapter.drafts(sequence.reply.token_ids[-1], state, num_drafts, draw)
