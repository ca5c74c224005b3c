"""The steps of a request on one loaded model: restore, prefill, decode, publish.

engine/serving.py calls the methods of Runner in this order:

    start          once
    read           until the prompt is fed; `wait` before a step of it, if others decode
    decode         for all sequences together, until the reply ends or `finish` ends it
    publish_turn   once; `abandon` instead after an error

runner/preview.py calls `set_aside` instead of `publish_turn`: the state of a preview is kept apart.
Each call is a bounded piece of work, so that a cancellation waits for one call at most.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable
from functools import partial

from engine.cache.disk.tier import NOTHING_FETCHED
from engine.cache.points import PointKind
from engine.cache.prefix_cache import PrefixCache
from engine.cache.snapshot import Snapshot
from engine.cache.trees import evaluate
from engine.chat.prompt import Prompt
from engine.chat.reply import ReplyStream, TextPiece
from engine.cleanup import undo_on_error
from engine.events import (
    Event,
    PrefillProgress,
    ReadAhead,
    RequestFinished,
    TextDelta,
)
from engine.models.loader import LoadedModel
from engine.reading_pace import ReadingPace
from engine.runner.admission import Admission
from engine.runner.closing import Closing
from engine.runner.decoder import Decoder, StepResult
from engine.runner.drafting import Drafter
from engine.runner.drawing import SourceFactory, token_source
from engine.runner.feeding import Feeder
from engine.runner.planning import PromptPlanner
from engine.runner.scores import ScoredTokens
from engine.runner.sequence import Clock, Sequence, room_for
from engine.types import FinishReason, Request, TokenScore
from engine.usage import Usage

log = logging.getLogger(__name__)


class Runner:
    """The steps of requests on one loaded model and its prefix cache. Engine thread only."""

    def __init__(  # noqa: PLR0913 (the parts of a loaded model)
        self,
        model: LoadedModel,
        cache: PrefixCache,
        planner: PromptPlanner,
        feeder: Feeder,
        admission: Admission,
        drafter: Drafter,
        *,
        looks_ahead: bool,
        make_source: SourceFactory = token_source,
    ) -> None:
        self._model = model
        self._cache = cache
        self._planner = planner
        self._feeder = feeder
        self._admission = admission
        self._make_source = make_source
        self._pace = ReadingPace()
        self._decoder = Decoder(model, cache, drafter, looks_ahead=looks_ahead)
        self._closing = Closing(model, cache, feeder)

    def start(
        self, request: Request, submitted: float, *, beside: Iterable[Sequence] = ()
    ) -> Sequence | None:
        """Render and tokenise a request, and restore the cached part of its prompt.

        If the whole prompt is restored, the sequence is decoded from the next step on.

        Returns:
            The sequence. None if there is not enough memory for it beside the running requests.

        Raises:
            TemplateError: the template refused the messages.
            ContextFullError: the prompt leaves no room for a reply.
            TextTooLongError: neither would a prompt with the new message alone.
            MemoryFullError: the device cannot hold the request, even alone.
        """
        clock = Clock(submitted=submitted, started=time.perf_counter())
        prompt = self._model.prompts.build(
            request.messages,
            thinking=request.thinking,
            keep_thinking=request.keep_thinking,
            tools=request.tools,
        )
        self._admission.check_context(prompt, request)
        rooms = (sequence.room for sequence in beside)
        if not self._admission.fits(prompt, request, rooms):
            return None
        clock.rendered = time.perf_counter()
        sequence = self._restore(request, prompt, clock)
        if not sequence.is_in_prefill:
            # The whole prompt and its logits were restored: no prefill is needed.
            self._decoder.attach(sequence)
        return sequence

    def read(self, sequence: Sequence, seconds: float = math.inf) -> list[Event]:
        """Feed a chunk of the prompt, or compute a part of a chunk for about `seconds`.

        After the last chunk, the sequence is decoded from the next step on.
        """
        sequence.logits = sequence.prefill.step(sequence.room, seconds)
        if not sequence.is_in_prefill:
            if sequence.request.shares_prompt and not sequence.lease.side:
                self._cache.publish_prompt(sequence.lease)
            self._decoder.attach(sequence)
            return []
        return [] if sequence.prefill.is_computing else [self._progress(sequence)]

    def decode(self, beside_s: float = 0.0) -> list[StepResult]:
        """Draw the next tokens of every sequence whose prompt is fed.

        When a reply ends, its last event is RequestFinished.

        beside_s: seconds that a prompt is read for after each step, 0 if none is read.
        """
        return self._decoder.step(self._deliver, beside_s)

    def wait(self) -> list[StepResult]:
        """Wait until the device has computed the launched pass. Return the failed sequences."""
        return self._decoder.wait()

    def finish(self, sequence: Sequence, reason: FinishReason) -> list[Event]:
        """End a reply after its newest token, and return its last events.

        The caller must call publish_turn next.
        """
        self._decoder.detach(sequence)
        sequence.ended = reason
        events = self._deltas(sequence, sequence.reply.flush())
        finished = RequestFinished(
            request_id=sequence.request.request_id,
            reason=reason,
            content=sequence.reply.content,
            reasoning=sequence.reply.reasoning,
            reply=sequence.reply.tokens(),
            usage=self._usage(sequence),
            prompt_ids=sequence.prompt.token_ids,
            scores=self._scores(sequence),
        )
        return [*events, finished]

    def publish_turn(self, sequence: Sequence, *, is_last: bool = False) -> ReadAhead | None:
        """Feed the end of the reply and the template's text after it, then publish the sequence.

        This happens while the user reads the answer. In the next turn, only the new text is left to
        feed.

        is_last: True if the model is dropped now. Nothing is then fed, so that the app ends sooner.

        Returns:
            The next prompt as a read-ahead task, if the template will render the reply differently
            in that prompt. Otherwise None. A request that was stopped before its first token
            returns
            None: its user does not want the prompt read. A side request is not published.
        """
        lease = sequence.lease
        needs_no_read_ahead = is_last
        if lease.side:
            self._cache.abandon(lease)
            return None
        if sequence.is_in_prefill:
            # The request was stopped during prefill: keep the tokens fed so far.
            sequence.prefill.cut(PointKind.BRANCH)
        elif sequence.reply.token_ids:
            needs_no_read_ahead = self._closing.try_feed(sequence, is_last=is_last)
        shown = sequence.upcoming if sequence.reply.token_ids else sequence.request
        self._feeder.publish(shown, sequence.prompt, lease, is_turn=True)
        return sequence.upcoming if sequence.has_reply and not needs_no_read_ahead else None

    def set_aside(self, sequence: Sequence, recent: Iterable[Snapshot]) -> None:
        """End a side request, and keep its state for the request that continues its reply.

        recent: snapshots at its newest tokens.

        Raises:
            RuntimeError: there is no memory for the state. Call abandon() then.
        """
        self._decoder.detach(sequence)
        lease = sequence.lease
        if sequence.is_in_prefill:
            sequence.prefill.cut(PointKind.BRANCH)
        else:
            # With the logits, a request needs no pass even if it ends with the last token in the
            # caches.
            self._closing.keep_end(lease, sequence.rows[-1] if sequence.rows else None)
            held = [point for point in recent if point.num_tokens < lease.hot.num_tokens]
            evaluate([point.states for point in held])
            lease.snapshots += held
        self._cache.set_aside(lease)
        self._feeder.ahead.note_fed(
            sequence.request.conversation_id, lease.hot.token_ids, lease.restored
        )

    def abandon(self, sequence: Sequence) -> None:
        """Stop a failed request, and remove what it added to the prefix cache."""
        self._decoder.detach(sequence)
        self._cache.abandon(sequence.lease)

    # Prefill

    def _restore(self, request: Request, prompt: Prompt, clock: Clock) -> Sequence:
        """Acquire caches with the cached part of a prompt, and plan the prefill of the rest."""
        reply = ReplyStream(
            self._model.prompts.tokenizer, in_reasoning=prompt.in_reasoning, begun=prompt.begun
        )
        source = self._make_source(self._model, request, reply)
        scored = None
        if request.num_likeliest is not None:
            source = scored = ScoredTokens(source, request.num_likeliest)
        fetched = NOTHING_FETCHED
        disk = self._feeder.disk
        if disk is not None and not request.side:
            fetched = disk.fetch(request.conversation_id, prompt.token_ids)
        lease = self._cache.acquire(
            request.conversation_id,
            prompt.token_ids,
            self._model.adapter.new_caches,
            room=room_for(len(prompt.token_ids), request),
            side=request.side,
        )
        clock.restored = time.perf_counter()
        with undo_on_error(partial(self._cache.abandon, lease)):
            plan_until = self._planner.of_lease(request, prompt, lease, fetched)
            return Sequence(
                request=request,
                prompt=prompt,
                plan=plan_until(None),
                plan_until=plan_until,
                disk_s=fetched.seconds,
                prefill=self._feeder.prefill(prompt, lease),
                reply=reply,
                source=source,
                scored=scored,
                clock=clock,
                max_output=self._admission.max_output(prompt, request),
                logits=lease.logits,
            )

    def _progress(self, sequence: Sequence) -> PrefillProgress:
        plan, fed, now = sequence.plan, sequence.fed, time.perf_counter()
        before = sequence.num_reported or plan.restored
        self._pace.note(before, fed, now - (sequence.reported or sequence.clock.restored), now)
        sequence.num_reported, sequence.reported = fed, now
        left = self._pace.time(fed, plan.prompt_tokens)
        return PrefillProgress(
            sequence.request.request_id,
            fed - plan.restored,
            plan.prompt_tokens - plan.restored,
            eta_s=None if left is None else left.seconds,
        )

    # Decode

    def _deliver(self, sequence: Sequence, token_id: int) -> list[Event]:
        now = time.perf_counter()
        if token_id in self._model.prompts.tokenizer.markers.eos_ids:
            return self.finish(sequence, FinishReason.STOP)
        sequence.clock.first_token = sequence.clock.first_token or now
        sequence.clock.last_token = now
        if sequence.scored is not None:
            sequence.scored.keep(len(sequence.reply.token_ids), token_id)
        events = self._deltas(sequence, sequence.reply.add(token_id))
        reason = self._limit_reached(sequence)
        return events if reason is None else [*events, *self.finish(sequence, reason)]

    def _limit_reached(self, sequence: Sequence) -> FinishReason | None:
        if sequence.num_output < sequence.max_output:
            return None
        is_stopped = sequence.max_output == sequence.request.stop_after
        return FinishReason.CANCELLED if is_stopped else FinishReason.LENGTH

    def _deltas(self, sequence: Sequence, pieces: Iterable[TextPiece]) -> list[Event]:
        request_id = sequence.request.request_id
        return [
            TextDelta(request_id, piece.channel, piece.text, sequence.num_output)
            for piece in pieces
        ]

    def _scores(self, sequence: Sequence) -> tuple[TokenScore, ...]:
        if sequence.scored is None:
            return ()
        start = sequence.reply.tokens().answer_start
        return sequence.scored.scores(self._model.prompts.tokenizer, start)

    def _usage(self, sequence: Sequence) -> Usage:
        clock = sequence.clock
        now = time.perf_counter()
        first = clock.first_token or now
        decode_s = clock.last_token - clock.first_token
        disk = self._feeder.disk
        if disk is not None and not sequence.lease.side:
            # A request may have been stopped while it read.
            num_read = min(sequence.fed, sequence.plan.prompt_tokens)
            num_fed = num_read - sequence.plan.restored
            disk.rates.note_tokens(num_fed, first - clock.restored)
        is_read = not sequence.is_in_prefill
        return Usage(
            plan=sequence.plan if is_read else sequence.plan_until(sequence.fed),
            output_tokens=sequence.num_output,
            queue_ms=(clock.started - clock.submitted) * 1e3,
            render_ms=(clock.rendered - clock.started) * 1e3,
            restore_ms=(clock.restored - clock.rendered) * 1e3,
            prefill_ms=(first - clock.restored) * 1e3,
            ttft_ms=(first - clock.submitted) * 1e3,
            total_ms=(now - clock.submitted) * 1e3,
            decode_tok_s=(sequence.num_output - 1) / decode_s if decode_s > 0 else 0.0,
            cache_bytes=self._cache.holdings.ledger().total_bytes,
            passes=sequence.num_passes,
            drafted_tokens=sequence.num_drafted,
            accepted_tokens=sequence.num_accepted,
            disk_ms=sequence.disk_s * 1e3,
            written_bytes=disk.statistics().written_bytes if disk else 0,
        )
