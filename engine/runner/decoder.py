"""Decoding: one step for every running sequence, in one forward pass. Engine thread only.

The Runner of a loaded model owns one Decoder. It attaches a sequence when its prompt is fed, calls
`step` for each decode step, and detaches the sequence when the reply ends or fails. The first token
is drawn from the logits of the prefill. Each later token needs a pass that feeds the token before.

With look-ahead, a drawn token is fed to the next pass before its id is read, so that the device
works while the tokens of this step are delivered to the app:

    step n     launch pass n, which is fed token n, and draw token n+1 from its logits (lazily)
               read the id of token n (the only wait), deliver it
    step n+1   launch pass n+1 ...

A token of an answer in a format depends on the token before it in a way that is computed here and
not on the device. Such a token is drawn at the end of step n, while pass n is computed.

Without look-ahead, a token is read before it is fed. A sequence's first step launches no pass:

    step 1     draw token 1, read and deliver it
    step n     launch pass n, which is fed token n-1, and draw token n; read and deliver it

With speculation, a step can verify drafts: guesses of a reply's next tokens, from a Drafter. The
drafts follow a token that is read, so such a step does not look ahead. The model's multi-token
prediction head may make drafts from the state of the caches, which it leaves as it is:

    step n     read and deliver token n, if an earlier pass gave it
               launch pass n, which is fed token n and k drafts; draw the tokens n+1 to n+k+1
               read them up to the first that differs from its draft, and deliver them
               remove the wrong drafts from the caches

Each token is drawn from the logits after the tokens before it, with the random key of its index.
These are the same arguments as without speculation, so drafts do not change the tokens of a reply
(beyond rounding: see DECISIONS.md).

With look-ahead, when the last token of a sequence is read, a pass that feeds this token is already
launched. `detach` undoes this pass for the row of the sequence. The caches of the sequence then
hold the same tokens as without look-ahead: the whole reply except the newest token.

The fields of an attached sequence between two steps:

    before its first step        `logits` set, no token drawn, `drawn` None
    without look-ahead, or       the newest token is in `reply` and not fed, `drawn` None
    after a step with drafts
    after a step that looked     the newest token of `reply` is fed but not recorded in the caches
    ahead                        (`is_ahead`), and the one after it is drawn but not read (`drawn`)

_set_drawn sets `drawn`, and _deliver_drawn clears it. _launch sets `is_ahead`, and _commit_ahead
clears it at the next step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from time import perf_counter
from typing import NamedTuple, TypeVar

import mlx.core as mx

from engine.cache.prefix_cache import PrefixCache
from engine.cache.trees import evaluate, evaluate_soon
from engine.errors import Failure, attempt
from engine.events import Event
from engine.models.loader import LoadedModel
from engine.runner.batch import Batch
from engine.runner.drafting import Drafter, Drafts
from engine.runner.head_drafts import HeadDrafter
from engine.runner.next_token import draw_confirmed, draw_next, read_token
from engine.runner.sequence import Sequence

T = TypeVar("T")
# Function that delivers a token of a sequence and returns its events.
Deliver = Callable[[Sequence, int], list[Event]]


class StepResult(NamedTuple):
    """The result of one step for one sequence: its events, or its failure."""

    sequence: Sequence
    result: list[Event] | Failure


class Decoder:
    """The sequences that are decoded together.

    The tokens of a sequence do not depend on the other sequences, beyond rounding.
    """

    def __init__(
        self, model: LoadedModel, cache: PrefixCache, drafter: Drafter, *, looks_ahead: bool
    ) -> None:
        self._model = model
        self._cache = cache
        self._drafter = drafter
        self._looks_ahead = looks_ahead and model.can_undo
        self._sequences: list[Sequence] = []
        self._batch = Batch(model)
        self._head = HeadDrafter(model, self._batch)
        # Events of the present step, and failures.
        self._events: dict[Sequence, list[Event]] = {}
        self._failed: list[StepResult] = []
        # True if the newest step fed one token to each of the present sequences, and nothing else
        # was computed since. The duration of such a step is that of its pass.
        self._is_steady = False

    def attach(self, sequence: Sequence) -> None:
        """Decode a sequence from the next step on. The prompt must be fed and `logits` set.

        Runner calls this after the last chunk of the prompt, or when the whole prompt is restored.
        """
        self._sequences.append(sequence)

    def detach(self, sequence: Sequence) -> None:
        """Remove a sequence from the batch and hand its caches back. Idempotent.

        Runner calls this when a reply ends, is cancelled or fails. Afterwards the caches hold all
        tokens of the sequence except the newest.
        """
        if sequence not in self._sequences:
            return
        self._sequences.remove(sequence)
        self._drafter.forget(sequence)
        sequence.drawn = None
        self._batch.remove(sequence, undoing=sequence.is_ahead)
        if sequence.is_ahead:
            sequence.rows = sequence.rows[:-1]
        sequence.is_ahead = False

    def step(self, deliver: Deliver, beside_s: float = 0.0) -> list[StepResult]:
        """Draw and deliver the next tokens of every sequence.

        An error fails only the sequences that it concerns, and does not end the step.

        Args:
            deliver: function that gets a sequence and the id of its new token. It returns the
                events of the token, and detaches the sequence if the sequence ends.
            beside_s: seconds that a prompt is read for after each step, 0 if none is read.

        Returns:
            One result for each sequence that got a token or failed. Failed sequences are detached.
        """
        start = perf_counter()
        self._events, self._failed = {}, []
        present = list(self._sequences)
        new = [s for s in self._sequences if s.drawn is None and not s.num_output]
        _set_drawn(self._each(new, _draw_first))
        drafts: Mapping[Sequence, Drafts] = {}
        self._drafter.note_beside(beside_s)
        if self._drafter.may_propose(self._sequences):
            # A draft follows a read token, so the drawn tokens are read and delivered first.
            for sequence in self._sequences:
                _commit_ahead(sequence)
            self._deliver_drawn(deliver)
            self._each(self._sequences, self._reserve)
            drafts = self._drafter.propose(
                self._sequences, partial(self._head.draft, self._sequences)
            )
        if drafts:
            self._verify(drafts, deliver)
        else:
            self._decode_one(deliver)
            if self._is_steady:
                self._drafter.note_pass(present, 1, perf_counter() - start)
        # The next step is timed only if this one fed one token to each of the same sequences.
        self._is_steady = not drafts and present == self._sequences
        results = [StepResult(sequence, events) for sequence, events in self._events.items()]
        # Keep no sequence that has ended: its caches would stay in memory until the next step.
        self._events = {}
        return [*results, *self._take_failed()]

    def wait(self) -> list[StepResult]:
        """Wait until the launched pass is computed. Detach and return the sequences that failed.

        Serving calls this through Runner before it feeds a part of another request's prompt, so
        that the measured time of that part does not include the pass.
        """
        self._failed = []
        self._is_steady = False
        self._each(self._sequences, _wait)
        return self._take_failed()

    def _decode_one(self, deliver: Deliver) -> None:
        """Feed and draw one token per sequence."""
        logits = self._launch()
        drawn_after_read = {
            sequence: row
            for sequence, row in logits.items()
            if sequence.drawn is not None and sequence.draws_late
        }
        next_tokens = self._draw({s: row for s, row in logits.items() if s not in drawn_after_read})
        # The pass and its draws are one evaluation, because each one costs time.
        states = self._head.states([*drawn_after_read, *next_tokens])
        evaluate_soon(list(drawn_after_read.values()), list(next_tokens.values()), states)
        # Without look-ahead, this step reads the tokens that its own pass gives. With look-ahead,
        # it reads the tokens drawn before the pass. The pass's own tokens are kept for the next
        # step.
        if not self._looks_ahead:
            _set_drawn(next_tokens)
        self._deliver_drawn(deliver)
        if self._looks_ahead:
            _set_drawn(next_tokens)
            drawn = self._draw(
                {s: row for s, row in drawn_after_read.items() if s in self._sequences}
            )
            evaluate_soon(list(drawn.values()))
            _set_drawn(drawn)

    def _launch(self) -> dict[Sequence, mx.array]:
        """Feed one token per sequence. Return the lazy logits (V,) of each sequence's next token.

        The result omits sequences that failed, and sequences whose newest token is not read yet if
        look-ahead is off. Nothing is read.
        """
        self._each(self._sequences, self._reserve)
        inputs = {s: i for s in self._sequences if (i := self._next_input(s)) is not None}
        for sequence in inputs:
            _commit_ahead(sequence)
        logits = self._forward({s: i[None] for s, i in inputs.items()}) if inputs else {}
        for sequence in logits:
            sequence.num_passes += 1
            if self._looks_ahead:
                # The id of the fed token may not be read yet, and `detach` may undo the pass.
                sequence.is_ahead = True
            else:
                sequence.lease.hot.commit(sequence.reply.token_ids[-1:])
        return {sequence: logits[sequence][0] for sequence in logits}

    def _draw(self, logits: Mapping[Sequence, mx.array]) -> dict[Sequence, mx.array]:
        """Draw the next token of each sequence from its logits (V,), lazily."""
        return self._each(logits, lambda sequence: _draw_from(sequence, logits[sequence]))

    def _next_input(self, sequence: Sequence) -> mx.array | None:
        """Return the id of the next token to feed, as a lazy scalar.

        None if the token must be read before it is fed, because look-ahead is off.
        """
        if sequence.drawn is not None:
            return sequence.drawn if self._looks_ahead else None
        return mx.array(sequence.reply.token_ids[-1], mx.uint32)

    def _reserve(self, sequence: Sequence) -> None:
        self._cache.reserve_tokens(sequence.lease, sequence.room)

    def _deliver_drawn(self, deliver: Deliver) -> None:
        """Read and deliver the tokens that are drawn but not read yet."""
        drawn = {s: s.drawn for s in self._sequences if s.drawn is not None}
        # Read the tokens one by one. If they were stacked into one array first, that array would be
        # computed after the pass that was just launched, and the read would wait for that pass.
        token_ids = self._each(drawn, lambda sequence: read_token(drawn[sequence]))
        for sequence in token_ids:
            sequence.drawn = None
        self._deliver({sequence: [token_id] for sequence, token_id in token_ids.items()}, deliver)

    def _deliver(self, token_ids: Mapping[Sequence, list[int]], deliver: Deliver) -> None:
        """Deliver new tokens until a sequence ends. Keep their events as results of the step."""

        def deliver_all(sequence: Sequence) -> list[Event]:
            events: list[Event] = []
            for token_id in token_ids[sequence]:
                self._drafter.push(sequence, token_id)
                events += deliver(sequence, token_id)
            return events

        for sequence, events in self._each(token_ids, deliver_all).items():
            self._events.setdefault(sequence, []).extend(events)

    # Speculation

    def _verify(self, drafts: Mapping[Sequence, Drafts], deliver: Deliver) -> None:
        """Feed the newest token and the drafts of every sequence, and deliver the drawn tokens."""
        start = perf_counter()
        end_ids = self._model.prompts.tokenizer.markers.eos_ids
        for sequence, token_ids in drafts.items():
            assert len(token_ids) < sequence.num_left
            assert end_ids.isdisjoint(token_ids)
            assert sequence.takes_drafts
        inputs = {s: (s.reply.token_ids[-1], *drafts.get(s, ())) for s in self._sequences}
        pass_len = max(map(len, inputs.values()))
        logits = self._forward({s: mx.array(token_ids) for s, token_ids in inputs.items()})
        evaluate_soon(list(logits.values()))
        drawn = self._each(
            logits,
            lambda sequence: draw_confirmed(sequence, logits[sequence], drafts.get(sequence, ())),
        )
        self._keep_confirmed(drawn)
        evaluate_soon(self._head.states(drawn))
        for sequence, token_ids in drawn.items():
            num_drafts, num_accepted = len(drafts.get(sequence, ())), len(token_ids) - 1
            sequence.num_passes += 1
            sequence.num_drafted += num_drafts
            sequence.num_accepted += num_accepted
            if num_drafts:
                self._drafter.note_drafts(sequence, num_drafts, num_accepted)
        self._drafter.note_pass(list(logits), pass_len, perf_counter() - start)
        self._deliver(drawn, deliver)

    def _keep_confirmed(self, drawn: Mapping[Sequence, Collection[int]]) -> None:
        """Remove the wrong drafts from the caches, and record the tokens that the caches hold.

        drawn: for each sequence of the newest pass, the tokens that were drawn after it. The newest
            token and the confirmed drafts, which are fed, are equally many.
        """
        for sequence, token_ids in drawn.items():
            fed = [sequence.reply.token_ids[-1], *token_ids][:-1]
            sequence.lease.hot.commit(fed, self._batch.pass_len(sequence))
        self._batch.keep({sequence: len(token_ids) for sequence, token_ids in drawn.items()})

    # The forward pass

    def _forward(self, inputs: Mapping[Sequence, mx.array]) -> dict[Sequence, mx.array]:
        """Feed each sequence its tokens, of shape (L,), in one pass.

        Returns:
            The lazy logits (L, V) of the sequences that did not fail.
        """
        logits: dict[Sequence, mx.array] = {}
        for sequence, result in self._batch.forward(inputs).items():
            if isinstance(result, Failure):
                self._fail(sequence, result)
            else:
                logits[sequence] = result
        return logits

    # Errors

    def _each(
        self, sequences: Iterable[Sequence], work: Callable[[Sequence], T]
    ) -> dict[Sequence, T]:
        """Call `work` for each sequence, and return the results.

        If `work` raises an error for a sequence, only that sequence fails.
        """
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


def _set_drawn(drawn: Mapping[Sequence, mx.array]) -> None:
    for sequence, token_id in drawn.items():
        sequence.drawn = token_id


def _draw_first(sequence: Sequence) -> mx.array:
    assert sequence.logits is not None
    return _draw_from(sequence, sequence.logits)


def _draw_from(sequence: Sequence, logits: mx.array) -> mx.array:
    if sequence.keeps_rows:
        sequence.rows = (*sequence.rows[-1:], logits)
    return draw_next(sequence, logits)


def _wait(sequence: Sequence) -> None:
    if sequence.drawn is not None:
        evaluate(sequence.drawn)


def _commit_ahead(sequence: Sequence) -> None:
    """Record the token that the newest pass fed before it was read. It is read by now.

    The pass cannot be undone afterwards.
    """
    if sequence.is_ahead:
        sequence.lease.hot.commit(sequence.reply.token_ids[-1:])
        sequence.is_ahead = False
