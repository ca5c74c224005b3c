"""Draws the next token of every sequence in one pass a step. Engine thread only.

With look-ahead a drawn token is fed before it is read, so that the device works while this step's
tokens are delivered. When a sequence ends, its row takes the newest pass back. Its caches then hold
the same as without look-ahead: all but the newest of its reply's tokens.

    step n     pass n is launched: it is fed the tokens drawn after pass n-1
               the tokens drawn after pass n-1 are read: the only wait
    step n+1   pass n+1 is launched ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple, TypeVar

import mlx.core as mx

from engine.cache.prefix_cache import PrefixCache
from engine.cache.trees import evaluate, evaluate_soon
from engine.errors import Failure, attempt, failure_of
from engine.events import Event
from engine.models.filters import PENALTY_WINDOW
from engine.models.loader import LoadedModel
from engine.models.rows import MergedRows, RowByRow, RowGroup
from engine.runner.sequence import Sequence

T = TypeVar("T")


class StepResult(NamedTuple):
    """The events of one sequence's step, or its failure."""

    sequence: Sequence
    result: list[Event] | Failure


class Decoder:
    """The sequences whose prompts are read. Attaching or detaching one changes no other's tokens."""

    def __init__(self, model: LoadedModel, cache: PrefixCache, *, looks_ahead: bool) -> None:
        self._model = model
        self._cache = cache
        self._looks_ahead = looks_ahead and model.can_undo
        self._sequences: list[Sequence] = []
        self._grouped: list[Sequence] = []  # of the newest pass, with those detached since
        self._places: dict[Sequence, tuple[RowGroup, int]] = {}
        self._failed: list[StepResult] = []  # in this step

    def attach(self, sequence: Sequence) -> None:
        """Decode a sequence from the next step on. Its prompt's logits must be there."""
        self._sequences.append(sequence)

    def detach(self, sequence: Sequence) -> None:
        """Hand a sequence its caches back, with all but the newest of its tokens. Idempotent."""
        if sequence not in self._sequences:
            return
        self._sequences.remove(sequence)
        sequence.drawn = None
        if sequence in self._places:
            group, row = self._places.pop(sequence)
            group.hand_back(row, undoing=self._looks_ahead)

    def step(self, deliver: Callable[[Sequence, int], list[Event]]) -> list[StepResult]:
        """Draw and deliver the next token of every sequence.

        Args:
            deliver: returns the events of a token that was read, and detaches a sequence that ends.

        Returns:
            A result for each sequence. Those that failed are detached.
        """
        self._failed = []
        new = [s for s in self._sequences if s.drawn is None and not s.num_output]
        _keep_drawn(self._each(new, self._draw_first))
        following = self._launch()
        if not self._looks_ahead:
            _keep_drawn(following)
        token_ids = self._read()
        if self._looks_ahead:
            _keep_drawn(following)
        delivered = self._each(token_ids, lambda sequence: deliver(sequence, token_ids[sequence]))
        results = [StepResult(sequence, events) for sequence, events in delivered.items()]
        return [*results, *self._take_failed()]

    def wait(self) -> list[StepResult]:
        """Wait until the launched pass is computed. Return and detach the sequences that failed."""
        self._failed = []
        self._each(self._sequences, _wait)
        return self._take_failed()

    def _launch(self) -> dict[Sequence, mx.array]:
        """Feed every sequence its next token, and begin to compute the tokens drawn after them."""
        self._each(self._sequences, self._reserve)
        inputs = {s: i for s in self._sequences if (i := self._next_input(s)) is not None}
        logits = self._forward(inputs) if inputs else {}
        for sequence in logits:
            if sequence.num_output:
                # Fed by this pass or, with look-ahead, by the one before; and read by now.
                sequence.lease.hot.commit(sequence.reply.token_ids[-1:])
        following = self._each(logits, lambda sequence: self._draw(sequence, logits[sequence]))
        evaluate_soon(list(inputs.values()), list(following.values()))
        return following

    def _next_input(self, sequence: Sequence) -> mx.array | None:
        """Return the token id to feed, None if there is none yet."""
        if sequence.drawn is not None:
            return sequence.drawn if self._looks_ahead else None
        return mx.array(sequence.reply.token_ids[-1], mx.uint32)

    def _reserve(self, sequence: Sequence) -> None:
        self._cache.reserve_tokens(sequence.lease, sequence.room)

    def _read(self) -> dict[Sequence, int]:
        """Wait for the drawn tokens."""
        drawn = {s: s.drawn for s in self._sequences if s.drawn is not None}
        # One by one: an array made of them would be computed after the pass that was just launched.
        token_ids = self._each(drawn, lambda sequence: _token_id(drawn[sequence]))
        for sequence in token_ids:
            sequence.drawn = None
        return token_ids

    # The pass

    def _forward(self, inputs: Mapping[Sequence, mx.array]) -> dict[Sequence, mx.array]:
        """Feed each sequence a token. Return the logits (V,) of those that could be fed."""
        try:
            self._regroup(list(inputs))
            group, _ = self._places[self._grouped[0]]
            rows = group.forward(self._model.adapter, list(inputs.values()))
            return dict(zip(inputs, rows, strict=True))
        except Exception as error:  # noqa: BLE001 — becomes a failure of each row
            failure = failure_of(f"a pass over {len(inputs)} rows", error)
        if len(inputs) == 1 or not self._model.can_undo:
            for sequence in inputs:
                self._fail(sequence, failure)
            return {}
        # One row may have failed the pass for all. Alone, it fails alone.
        self._hand_back_all()
        return self._each(inputs, lambda sequence: self._forward_alone(sequence, inputs[sequence]))

    def _forward_alone(self, sequence: Sequence, token_id: mx.array) -> mx.array:
        group = RowByRow([sequence.lease.hot.caches])
        self._places[sequence] = (group, 0)
        return group.forward(self._model.adapter, [token_id])[0]

    def _regroup(self, sequences: list[Sequence]) -> None:
        if sequences == self._grouped:
            return
        self._hand_back_all()
        rows = [sequence.lease.hot.caches for sequence in sequences]
        is_merged = len(rows) > 1 and self._model.can_merge
        group = MergedRows(rows) if is_merged else RowByRow(rows)
        self._grouped = sequences
        self._places = {sequence: (group, row) for row, sequence in enumerate(sequences)}

    def _hand_back_all(self) -> None:
        for group, row in self._places.values():
            group.hand_back(row, undoing=False)
        self._grouped = []
        self._places = {}

    # Drawing

    def _draw_first(self, sequence: Sequence) -> mx.array:
        assert sequence.logits is not None
        return self._draw(sequence, sequence.logits)

    def _draw(self, sequence: Sequence, logits: mx.array) -> mx.array:
        """Draw the token after all that are read or drawn, from the logits (V,) there. Lazy."""
        # Counted in the whole reply: a continued reply gets the tokens that it would have got.
        index = len(sequence.reply.token_ids) + (sequence.drawn is not None)
        return sequence.source.draw(logits, lambda: _recent(sequence), index=index)

    # Errors

    def _each(
        self, sequences: Iterable[Sequence], work: Callable[[Sequence], T]
    ) -> dict[Sequence, T]:
        """Return the result of work for each sequence. One that raises fails alone."""
        done: dict[Sequence, T] = {}
        for sequence in list(sequences):
            result = attempt("a row of a decode step", partial(work, sequence))
            if isinstance(result, Failure):
                self._fail(sequence, result)
            else:
                done[sequence] = result
        return done

    def _fail(self, sequence: Sequence, failure: Failure) -> None:
        self.detach(sequence)
        self._failed.append(StepResult(sequence, failure))

    def _take_failed(self) -> list[StepResult]:
        failed, self._failed = self._failed, []
        return failed


def _keep_drawn(drawn: Mapping[Sequence, mx.array]) -> None:
    for sequence, token_id in drawn.items():
        sequence.drawn = token_id


def _wait(sequence: Sequence) -> None:
    if sequence.drawn is not None:
        evaluate(sequence.drawn)


def _token_id(drawn: mx.array) -> int:
    token_id = drawn.item()
    assert isinstance(token_id, int)
    return token_id


def _recent(sequence: Sequence) -> mx.array:
    """Return the newest token ids of a sequence, a drawn one that is not read included."""
    # Without a copy of the whole output, which grows with every token.
    num_new, reply_ids = min(sequence.num_output, PENALTY_WINDOW), sequence.reply.token_ids
    token_ids = [
        *sequence.prompt.token_ids[-PENALTY_WINDOW:],
        *reply_ids[len(reply_ids) - num_new :],
    ]
    recent = mx.array(token_ids[-PENALTY_WINDOW:], mx.int32)
    if sequence.drawn is None:
        return recent
    newest = sequence.drawn[None].astype(mx.int32)
    return mx.concatenate([recent, newest])[-PENALTY_WINDOW:]
