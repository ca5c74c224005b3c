"""Draws the next token of every sequence that is being answered, in one pass. Engine thread only.

With look-ahead a drawn token is fed before anyone has read it: the device works on while this pass's
tokens go out. A sequence that ends there takes the pass back, so that it holds the same as without:
all but the newest of its reply's tokens.

    step n     pass n is launched: in go the tokens drawn after pass n-1, out come those drawn next
               the tokens drawn after pass n-1 are read: the only wait
    step n+1   pass n+1 is launched ...
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import mlx.core as mx

from engine.cache.prefix_cache import PrefixCache
from engine.cache.trees import evaluate, evaluate_soon
from engine.models.filters import PENALTY_WINDOW
from engine.models.loader import LoadedModel
from engine.models.rows import MergedRows, RowByRow, RowGroup
from engine.runner.sequence import Drawn, Sequence
from engine.sampling.draw import draw

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step gave one sequence: its next token, or what went wrong."""

    sequence: Sequence
    result: int | Exception


class Decoder:
    """The sequences whose prompts are read. Who joins or leaves changes nothing for the others."""

    def __init__(self, model: LoadedModel, cache: PrefixCache, *, looks_ahead: bool) -> None:
        self._model = model
        self._cache = cache
        self._looks_ahead = looks_ahead and model.can_undo
        self._sequences: list[Sequence] = []
        self._grouped: list[Sequence] = []  # of the newest pass, with those that have left since
        self._places: dict[Sequence, tuple[RowGroup, int]] = {}
        self._failed: list[Outcome] = []  # in this step

    def join(self, sequence: Sequence) -> None:
        """From the next step on; the logits of its prompt are there."""
        self._sequences.append(sequence)

    def leave(self, sequence: Sequence) -> None:
        """Its caches are its own again and hold all but the newest of its tokens. Idempotent."""
        if sequence not in self._sequences:
            return
        self._sequences.remove(sequence)
        sequence.drawn = None
        if sequence in self._places:
            group, row = self._places.pop(sequence)
            group.hand_back(row, undoing=self._looks_ahead)

    def step(self) -> list[Outcome]:
        """The next token of every sequence. Who met an error has left; others end with `leave`."""
        self._failed = []
        new = [s for s in self._sequences if s.drawn is None and not s.num_output]
        _take(self._each(new, self._draw_first))
        following = self._launch()
        if not self._looks_ahead:
            _take(following)
        outcomes = self._read()
        if self._looks_ahead:
            _take(following)
        return [*outcomes, *self._failed]

    def wait(self) -> list[Outcome]:
        """Wait until the pass that was launched is computed. Only who met an error, and has left."""
        self._failed = []
        self._each(self._sequences, _wait)
        return self._failed

    def _launch(self) -> dict[Sequence, Drawn]:
        """Feed every sequence its next token; what is drawn after it is computed from now on."""
        self._each(self._sequences, self._reserve)
        inputs = {s: i for s in self._sequences if (i := self._next_input(s)) is not None}
        logits = self._forward(inputs) if inputs else {}
        for sequence in logits:
            if sequence.num_output:
                # Fed by this pass or, with look-ahead, by the one before; and read by now.
                sequence.lease.hot.commit(sequence.reply.token_ids[-1:])
        following = self._each(logits, lambda sequence: self._draw(sequence, logits[sequence]))
        evaluate_soon(list(inputs.values()), [(d.token_id, d.logits) for d in following.values()])
        return following

    def _next_input(self, sequence: Sequence) -> mx.array | None:
        """A token id to feed, None for who has nothing to feed yet."""
        if sequence.drawn is not None:
            return sequence.drawn.token_id if self._looks_ahead else None
        return mx.array(sequence.reply.token_ids[-1], mx.uint32)

    def _reserve(self, sequence: Sequence) -> None:
        self._cache.reserve(sequence.lease, sequence.room)

    def _read(self) -> list[Outcome]:
        """Wait for the drawn tokens."""
        drawn = {s: s.drawn for s in self._sequences if s.drawn is not None}
        # One by one: an array made of them would be computed after the pass that was just launched.
        token_ids = self._each(drawn, lambda sequence: _token_id(drawn[sequence]))
        for sequence in token_ids:
            sequence.drawn = None
            logits = drawn[sequence].logits
            if sequence.request.record_logits and logits is not None:
                sequence.recorded.append(logits)
        return [Outcome(sequence, token_id) for sequence, token_id in token_ids.items()]

    # The pass

    def _forward(self, inputs: Mapping[Sequence, mx.array]) -> dict[Sequence, mx.array]:
        """Feed a token to each. Logits (V,) of all that could be fed."""
        try:
            self._regroup(list(inputs))
            group, _ = self._places[self._grouped[0]]
            rows = group.forward(self._model.adapter, list(inputs.values()))
            return dict(zip(inputs, rows, strict=True))
        except Exception as error:
            log.exception("a pass over %d rows failed", len(inputs))
            if len(inputs) == 1 or not self._model.can_undo:
                for sequence in inputs:
                    self._fail(sequence, error)
                return {}
        # It was the fault of one of them.
        self._release()
        return self._each(inputs, lambda sequence: self._forward_alone(sequence, inputs[sequence]))

    def _forward_alone(self, sequence: Sequence, token_id: mx.array) -> mx.array:
        group = RowByRow([sequence.lease.hot.caches])
        self._places[sequence] = (group, 0)
        return group.forward(self._model.adapter, [token_id])[0]

    def _regroup(self, sequences: list[Sequence]) -> None:
        if sequences == self._grouped:
            return
        self._release()
        rows = [sequence.lease.hot.caches for sequence in sequences]
        is_merged = len(rows) > 1 and self._model.can_merge
        group = MergedRows(rows) if is_merged else RowByRow(rows)
        self._grouped = sequences
        self._places = {sequence: (group, row) for row, sequence in enumerate(sequences)}

    def _release(self) -> None:
        for group, row in self._places.values():
            group.hand_back(row, undoing=False)
        self._grouped = []
        self._places = {}

    # Drawing

    def _draw_first(self, sequence: Sequence) -> Drawn:
        assert sequence.logits is not None
        return self._draw(sequence, sequence.logits)

    def _draw(self, sequence: Sequence, logits: mx.array) -> Drawn:
        """The token after all that is read and drawn, from the logits (V,) there."""
        request, unread = sequence.request, sequence.drawn
        # Of the whole reply: one that was stopped and goes on is as if it never had been.
        index = len(sequence.reply.token_ids) + (unread is not None)
        kept = logits if request.record_logits or sequence.forced_ids is not None else None
        if (forced := sequence.forced_ids) is not None:
            at = index - len(sequence.prompt.begun)
            eos = min(self._model.prompts.tokenizer.markers.eos_ids)
            return Drawn(mx.array(forced[at] if at < len(forced) else eos, mx.uint32), kept)
        filtered = sequence.filter(lambda: _recent(sequence), logits, index=index)
        sampling = request.sampling
        return Drawn(
            draw(filtered, temperature=sampling.temperature, seed=sampling.seed, index=index), kept
        )

    # Errors

    def _each(
        self, sequences: Iterable[Sequence], work: Callable[[Sequence], T]
    ) -> dict[Sequence, T]:
        """What work gives for each; an error is that sequence's alone."""
        done: dict[Sequence, T] = {}
        for sequence in list(sequences):
            try:
                done[sequence] = work(sequence)
            except Exception as error:  # noqa: BLE001 — it becomes theirs
                self._fail(sequence, error)
        return done

    def _fail(self, sequence: Sequence, error: Exception) -> None:
        self.leave(sequence)
        self._failed.append(Outcome(sequence, error))


def _take(drawn: Mapping[Sequence, Drawn]) -> None:
    for sequence, newest in drawn.items():
        sequence.drawn = newest


def _wait(sequence: Sequence) -> None:
    if sequence.drawn is not None:
        # A forced token is there before the pass is.
        evaluate(sequence.drawn.token_id, sequence.drawn.logits)


def _token_id(drawn: Drawn) -> int:
    token_id = drawn.token_id.item()
    assert isinstance(token_id, int)
    return token_id


def _recent(sequence: Sequence) -> mx.array:
    """Its newest token ids, that which nobody has read yet included."""
    # Without a copy of the whole output, which grows with every token.
    num_new, reply_ids = min(sequence.num_output, PENALTY_WINDOW), sequence.reply.token_ids
    token_ids = [
        *sequence.prompt.token_ids[-PENALTY_WINDOW:],
        *reply_ids[len(reply_ids) - num_new :],
    ]
    recent = mx.array(token_ids[-PENALTY_WINDOW:], mx.int32)
    if sequence.drawn is None:
        return recent
    newest = sequence.drawn.token_id[None].astype(mx.int32)
    return mx.concatenate([recent, newest])[-PENALTY_WINDOW:]
