"""The steps of a request on one loaded model: restore, prefill, decode, publish.

engine/serving.py calls the methods of Runner in this order:

    start          once
    read           until the prompt is fed
    decode         for all sequences together, until the reply ends or `finish` ends it
    publish_turn   once

Each call is a bounded piece of work, so that a cancellation waits for one call at most.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable
from functools import partial

from engine.cache.disk.tier import NOTHING_FETCHED, DiskTier, Fetched
from engine.cache.holdings import Lease
from engine.cache.points import PointKind, ResumePoint
from engine.cache.prefix_cache import ANOTHER_TOKEN, PrefixCache
from engine.cache.trees import evaluate
from engine.chat.prompt import Prompt
from engine.chat.prompt_builder import may_call_tool
from engine.chat.reply import ReplyStream, TextPiece
from engine.cleanup import undo_on_error
from engine.config import EngineConfig
from engine.errors import ContextFullError, Failure, TextTooLongError, attempt
from engine.events import (
    Event,
    PrefillProgress,
    ReadAhead,
    RequestFinished,
    TextDelta,
)
from engine.memory import spare_bytes
from engine.models.loader import LoadedModel
from engine.questions import NextPrompt, TokensCounted
from engine.reading_pace import ReadingPace
from engine.runner.chunks import Chunk, plan_chunks
from engine.runner.decoder import Decoder, StepResult
from engine.runner.drafting import Drafter
from engine.runner.drawing import SourceFactory, token_source
from engine.runner.explain import PrefixHit
from engine.runner.history import History
from engine.runner.plan import plan_prompt
from engine.runner.prefill import Prefill
from engine.runner.read_ahead import ReadAheadJob
from engine.runner.request_memory import RequestMemory
from engine.runner.sequence import Clock, Sequence, room_for
from engine.sequences import common_prefix_len
from engine.types import FinishReason, Request, Role
from engine.usage import PromptPlan, Usage

log = logging.getLogger(__name__)

# More tokens than the last word of a draft has with the template's text after it.
_DRAFT_END = 512


class Runner:
    """The steps of requests on one loaded model and its prefix cache. Engine thread only."""

    def __init__(
        self,
        model: LoadedModel,
        cache: PrefixCache,
        history: History,
        config: EngineConfig,
        drafter: Drafter,
        make_source: SourceFactory = token_source,
    ) -> None:
        self._model = model
        self._cache = cache
        self._history = history
        self._config = config
        self.disk: DiskTier | None = None  # cached state on disk; set by the engine loop
        self._make_source = make_source
        self._pace = ReadingPace()
        self._decoder = Decoder(model, cache, drafter, looks_ahead=config.looks_ahead)
        # The memory of each stage. On one machine there is one.
        self._memories = [
            RequestMemory(
                model.abilities.layout, config, spare_bytes(config, model.own_weight_bytes)
            ),
            *(RequestMemory(stage.layout, config, stage.spare_bytes) for stage in model.others),
        ]

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
            request.messages, thinking=request.thinking, keep_thinking=request.keep_thinking
        )
        self._check_context(prompt, request)
        if not self._fits(prompt, request, beside):
            return None
        clock.rendered = time.perf_counter()
        sequence = self._restore(request, prompt, clock)
        if sequence.logits is not None:
            # The whole prompt and its logits were restored: no prefill is needed.
            self._decoder.attach(sequence)
        return sequence

    def read(self, sequence: Sequence, seconds: float = math.inf) -> list[Event]:
        """Feed a chunk of the prompt, or compute a part of a chunk for about `seconds`.

        After the last chunk, the sequence is decoded from the next step on.
        """
        sequence.logits = sequence.prefill.step(sequence.room, seconds)
        if sequence.logits is not None:
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
        )
        return [*events, finished]

    def publish_turn(self, sequence: Sequence, *, is_last: bool = False) -> ReadAhead | None:
        """Feed the end of the reply and the template's text after it, then publish the sequence.

        This happens while the user reads the answer. In the next turn, only the new text is left to
        feed.

        is_last: True if the model is dropped now. Nothing is then fed, so that the app ends sooner.

        Returns:
            The next prompt as a read-ahead task, if the template will render the reply differently
            in that prompt. Otherwise None. A request that was stopped before its first token returns
            None: its user does not want the prompt read. A side request is not published.
        """
        lease = sequence.lease
        is_ahead = is_last
        if lease.side:
            self._cache.abandon(lease)
            return None
        if sequence.logits is None:
            # The request was stopped during prefill: keep the tokens fed so far.
            sequence.prefill.cut(PointKind.BRANCH)
        elif sequence.reply.token_ids:
            is_ahead = self._try_feed_closing(sequence, is_last=is_last)
        shown = sequence.upcoming if sequence.reply.token_ids else sequence.request
        self._publish(shown, sequence.prompt, lease, is_turn=True)
        return sequence.upcoming if sequence.has_reply and not is_ahead else None

    def abandon(self, sequence: Sequence) -> None:
        """Stop a failed request, and remove what it added to the prefix cache."""
        self._decoder.detach(sequence)
        self._cache.abandon(sequence.lease)

    def read_ahead(self, task: ReadAhead, *, displaces: bool) -> ReadAheadJob | None:
        """Return a job that feeds the known part of a conversation's next prompt.

        Args:
            task: the conversation and its messages.
            displaces: True if less valuable cached state may be evicted to make room.

        Returns:
            None if the known part is cached completely, if it does not fit into the budget or the
            context, or if the task is only to fetch state from disk.

        Raises:
            TemplateError: the template refused the messages.
        """
        prompt = self._build_read_ahead(task)
        if len(prompt.token_ids) >= self._model.facts.context_len:
            return None
        name, token_ids = task.conversation_id, prompt.token_ids
        has_room = displaces or self._cache.has_room(name, token_ids, 1, displaces=False)
        if self.disk is not None and has_room:
            self.disk.fetch(name, (*token_ids, ANOTHER_TOKEN))
        if task.fetch_only:
            return None
        match = self._cache.match_ahead(name, token_ids)
        if match.restored == len(token_ids):
            return None
        chunks = self._chunks(prompt, match.restored, match.matched)
        num_points = sum(chunk.kind is not None for chunk in chunks)
        if not self._cache.has_room(name, token_ids, num_points, displaces=displaces):
            log.info("no room to read ahead for conversation %s", name)
            return None
        lease = self._cache.acquire(
            name, token_ids, self._model.adapter.new_caches, room=len(token_ids), side=False
        )
        publish = partial(self._publish, task, prompt, is_turn=False)
        return ReadAheadJob(task, self._cache, self._feed(prompt, lease), publish)

    def count_tokens(self, task: NextPrompt) -> TokensCounted:
        """Return the number of tokens in the known part of a conversation's next prompt.

        State on disk counts as cached if a request would restore it. Nothing is changed.

        Raises:
            TemplateError: the template refused the messages.
        """
        prompt = self._build_read_ahead(task)
        name, token_ids = task.conversation_id, prompt.token_ids
        num_cached = self._cache.match_ahead(name, token_ids).restored
        if self.disk is not None:
            on_disk = self.disk.restorable(name, (*token_ids, ANOTHER_TOKEN))
            num_cached = max(num_cached, on_disk)
        error = self._too_long(task, prompt)
        num_parts = len(task.messages[-1].part_ends)
        starts = [p.num_tokens for p in prompt.points if p.kind is not PointKind.STRIDE]
        return TokensCounted(
            num_tokens=len(token_ids),
            num_cached=num_cached,
            num_too_long=0 if error is None else error.problem.num_tokens,
            is_text_too_long=isinstance(error, TextTooLongError),
            part_ends=tuple(starts[-1 - num_parts :]) if num_parts else (),
        )

    # Prefill

    def _planner(
        self, request: Request, prompt: Prompt, lease: Lease, fetched: Fetched
    ) -> Callable[[int | None], PromptPlan]:
        """Return a function that plans a prompt up to the number of tokens that are fed."""
        found = PrefixHit(
            restored=lease.restored,
            matched=lease.matched,
            on_disk=fetched.num_tokens,
            faulted=lease.faulted,
            needs_points=self._model.layout.needs_snapshot,
            max_held=self._cache.max_held,
        )
        known = self._history.recall(request, prompt, model=self._model.facts.path)
        return partial(plan_prompt, request, prompt, found, known)

    def _fits(self, prompt: Prompt, request: Request, beside: Iterable[Sequence]) -> bool:
        """Return True if a request fits into memory beside the other requests.

        Raise an error if it would not fit even alone.
        """
        prompt_len = len(prompt.token_ids)
        room = room_for(prompt_len, request)
        for memory in self._memories:
            memory.check_fits(prompt_len, room)
        others = [sequence.room for sequence in beside]
        return not others or all(
            memory.fits_beside(prompt_len, room, others) for memory in self._memories
        )

    def _check_context(self, prompt: Prompt, turn: Request | NextPrompt) -> None:
        """Raise an error if a prompt leaves no room for a reply in the model's context."""
        facts, needed = self._model.facts, len(prompt.token_ids)
        if needed < facts.context_len:
            return
        *earlier, newest = turn.messages
        lasting = [one for one in earlier if one.role is Role.SYSTEM]
        error = ContextFullError
        if newest.role is Role.USER:
            alone = self._model.prompts.build(
                (*lasting, newest), thinking=turn.thinking, keep_thinking=turn.keep_thinking
            )
            if len(alone.token_ids) >= facts.context_len:
                needed, error = len(alone.token_ids), TextTooLongError
        raise error(
            f"It needs {needed:,} tokens and {facts.title} reads at most {facts.context_len:,}.",
            needed,
        )

    def _too_long(self, task: NextPrompt, known: Prompt) -> ContextFullError | None:
        """Return the error that a draft would have if it was sent now; None if its prompt fits.

        known: the prompt without the end of the draft.
        """
        prompt = known
        if len(known.token_ids) + _DRAFT_END < self._model.facts.context_len:
            return None
        if task.is_draft:
            prompt = self._model.prompts.build(
                task.messages, thinking=task.thinking, keep_thinking=task.keep_thinking
            )
        try:
            self._check_context(prompt, task)
        except ContextFullError as error:
            return error
        return None

    def _restore(self, request: Request, prompt: Prompt, clock: Clock) -> Sequence:
        """Acquire caches with the cached part of a prompt, and plan the prefill of the rest."""
        reply = ReplyStream(
            self._model.prompts.tokenizer, in_reasoning=prompt.in_reasoning, begun=prompt.begun
        )
        source = self._make_source(self._model, request, reply)
        fetched = NOTHING_FETCHED
        if self.disk is not None and not request.side:
            fetched = self.disk.fetch(request.conversation_id, prompt.token_ids)
        lease = self._cache.acquire(
            request.conversation_id,
            prompt.token_ids,
            self._model.adapter.new_caches,
            room=room_for(len(prompt.token_ids), request),
            side=request.side,
        )
        clock.restored = time.perf_counter()
        with undo_on_error(partial(self._cache.abandon, lease)):
            plan_until = self._planner(request, prompt, lease, fetched)
            return Sequence(
                request=request,
                prompt=prompt,
                plan=plan_until(None),
                plan_until=plan_until,
                disk_s=fetched.seconds,
                prefill=self._feed(prompt, lease),
                reply=reply,
                source=source,
                clock=clock,
                max_output=self._max_output(request, prompt),
                logits=lease.logits,
            )

    def _feed(self, prompt: Prompt, lease: Lease) -> Prefill:
        """Return a prefill for the tokens of a prompt that a lease's caches do not hold yet."""
        chunks = self._chunks(prompt, lease.hot.num_tokens, lease.matched)
        return Prefill(self._model, self._cache, lease, prompt.token_ids, chunks)

    def _chunks(self, prompt: Prompt, start: int, matched: int) -> list[Chunk]:
        points = list(prompt.points)
        if self._model.layout.needs_snapshot and start < matched < len(prompt.token_ids):
            # The K/V matches more tokens than the last snapshot covers. Keep a snapshot at the end
            # of the match: a second edit at the same place then resumes at this snapshot.
            points.insert(0, ResumePoint(matched, PointKind.BRANCH))
        return plan_chunks(
            start,
            points,
            num_tokens=len(prompt.token_ids),
            cell_len=self._config.cell_len,
            stride_len=self._config.stride_len,
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
        events = self._deltas(sequence, sequence.reply.add(token_id))
        reason = self._limit_reached(sequence)
        return events if reason is None else [*events, *self.finish(sequence, reason)]

    def _limit_reached(self, sequence: Sequence) -> FinishReason | None:
        if sequence.num_output < sequence.max_output:
            return None
        is_stopped = sequence.max_output == sequence.request.stop_after
        return FinishReason.CANCELLED if is_stopped else FinishReason.LENGTH

    def _max_output(self, request: Request, prompt: Prompt) -> int:
        """Return the highest number of tokens that a request may add to a reply."""
        prompt_len = len(prompt.token_ids)
        limits = [
            request.max_tokens,
            self._model.facts.context_len - prompt_len,
            min(memory.max_tokens for memory in self._memories) - prompt_len,
        ]
        if request.stop_after is not None:
            limits.append(request.stop_after)
        return max(1, min(limits))

    def _deltas(self, sequence: Sequence, pieces: Iterable[TextPiece]) -> list[Event]:
        request_id = sequence.request.request_id
        return [
            TextDelta(request_id, piece.channel, piece.text, sequence.num_output)
            for piece in pieces
        ]

    # After the reply

    def _publish(
        self, shown: Request | ReadAhead, prompt: Prompt, lease: Lease, *, is_turn: bool
    ) -> None:
        points = [snapshot.num_tokens for snapshot in lease.snapshots]
        model = self._model.facts.path
        self._history.remember(shown, prompt, lease.hot.token_ids, points, model=model)
        self._cache.publish(lease, is_turn=is_turn)

    def _try_feed_closing(self, sequence: Sequence, *, is_last: bool) -> bool:
        """Feed the end of a reply. Return False if the next prompt must be read ahead instead."""
        fed = sequence.lease.hot.num_tokens
        is_ahead = attempt(
            "feeding a reply's end", lambda: self._feed_closing(sequence, is_last=is_last)
        )
        if not isinstance(is_ahead, Failure):
            return is_ahead
        if is_ahead.is_expected:
            log.info("the template refuses the next turn: %s", is_ahead.problem)
        else:
            self._cache.cut_back(sequence.lease, fed)
        # A limit of time or memory may have been exceeded. Idle work tries once more.
        return is_last

    def _feed_closing(self, sequence: Sequence, *, is_last: bool) -> bool:
        """Feed a reply's last token and the template's text between the reply and the next message.

        The template's text is not fed if it does not fit into the context. A reply that was stopped
        or cut off may be continued, so its last token gets a resume point.

        Returns:
            False if the template will render the reply differently in the next turn, for example
            without its thoughts. The next turn then resumes before the reply, so the template's
            text is not fed now.
        """
        held = sequence.prompt.followed_by(sequence.output_ids)
        if is_last:
            # A pass can take seconds beside other programs. A reply that is continued feeds its
            # newest token then: no pass has fed it before.
            self._keep_end(sequence.lease)
            return True
        if sequence.ended is not FinishReason.STOP:
            self._feed_all(held, sequence.lease)
        upcoming = self._build_read_ahead(sequence.upcoming)
        num_held = len(held.token_ids)
        if common_prefix_len(held.token_ids, upcoming.token_ids) < num_held:
            if may_call_tool(sequence.upcoming.messages):
                # The template keeps the reply if a tool result follows it.
                self._keep_end(sequence.lease)
            return False
        if len(upcoming.token_ids) <= self._model.facts.context_len:
            self._feed_all(upcoming, sequence.lease)
        return True

    def _feed_all(self, prompt: Prompt, lease: Lease) -> None:
        prefill = self._feed(prompt, lease)
        while prefill.chunks:
            prefill.step(prefill.end)

    def _keep_end(self, lease: Lease) -> None:
        """Keep a resume point after the last token in a lease's caches."""
        points = lease.snapshots
        is_kept = bool(points) and points[-1].num_tokens == lease.hot.num_tokens
        if self._model.layout.needs_snapshot and not is_kept:
            evaluate(self._cache.capture_snapshot(lease, PointKind.TAIL).states)

    def _build_read_ahead(self, task: NextPrompt) -> Prompt:
        return self._model.prompts.build_read_ahead(
            task.messages,
            thinking=task.thinking,
            keep_thinking=task.keep_thinking,
            is_draft=task.is_draft,
        )

    def _usage(self, sequence: Sequence) -> Usage:
        clock = sequence.clock
        now = time.perf_counter()
        first = clock.first_token or now
        decode_s = clock.last_token - clock.first_token
        if self.disk is not None and not sequence.lease.side:
            # A request may have been stopped while it read.
            num_read = min(sequence.fed, sequence.plan.prompt_tokens)
            num_fed = num_read - sequence.plan.restored
            self.disk.rates.note_tokens(num_fed, first - clock.restored)
        is_read = sequence.logits is not None
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
            cache_bytes=self._cache.ledger().total_bytes,
            passes=sequence.num_passes,
            drafted_tokens=sequence.num_drafted,
            accepted_tokens=sequence.num_accepted,
            disk_ms=sequence.disk_s * 1e3,
            written_bytes=self.disk.statistics().written_bytes if self.disk else 0,
        )
