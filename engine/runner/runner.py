"""Runs one request on the device: restore, prefill chunk by chunk, decode token by token, publish.

Every call does one bounded piece of work, so that a cancellation waits for one piece at most.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

import mlx.core as mx

from engine.cache.prefix_cache import Lease, PrefixCache
from engine.cache.radix import common_prefix_len
from engine.cache.trees import evaluate
from engine.chat.prompt import Point, PointKind, Prompt
from engine.chat.reply import ReplyStream, TextPiece
from engine.config import EngineConfig
from engine.errors import ContextFullError, EngineError
from engine.events import Event, PrefillProgress, RequestFinished, TextDelta
from engine.models.filters import make_filter
from engine.models.loader import LoadedModel
from engine.runner.chunks import Chunk, plan_chunks
from engine.runner.plan import plan_prompt
from engine.runner.sequence import Clock, Sequence
from engine.sampling.draw import draw
from engine.types import FinishReason, Message, Request, Role, Usage

log = logging.getLogger(__name__)

# Room made for a reply before it starts; for a longer one buffers grow by an eighth at a time.
_REPLY_ROOM = 512


class Runner:
    """Takes requests through one loaded model and its prefix cache. Engine thread only."""

    def __init__(self, model: LoadedModel, cache: PrefixCache, config: EngineConfig) -> None:
        self._model = model
        self._cache = cache
        self._config = config

    def start(self, request: Request, submitted: float) -> Sequence:
        """Render, tokenise, restore.

        Raises:
            TemplateError: the template refused the messages.
            ContextFullError: the prompt leaves no room for a reply.
        """
        clock = Clock(submitted=submitted, started=time.perf_counter())
        prompt = self._model.prompts.build(request.messages, thinking=request.thinking)
        self._check_fits(prompt)
        clock.rendered = time.perf_counter()
        logits_filter = make_filter(request.sampling, self._model.vocab_size)
        forced_ids = self._forced_ids(request, prompt)
        lease = self._cache.acquire(
            request.conversation_id,
            prompt.token_ids,
            self._model.adapter.new_caches,
            room=len(prompt.token_ids) + min(request.max_tokens, _REPLY_ROOM),
            side=request.side,
        )
        clock.restored = time.perf_counter()
        return Sequence(
            request=request,
            prompt=prompt,
            plan=plan_prompt(prompt, lease.restored, lease.matched, request.new_messages),
            lease=lease,
            reply=ReplyStream(self._model.prompts.tokenizer, in_reasoning=prompt.in_reasoning),
            chunks=self._chunks(prompt, lease),
            filter=logits_filter,
            forced_ids=forced_ids,
            clock=clock,
            logits=lease.logits,
        )

    def step(self, sequence: Sequence) -> list[Event]:
        """One prefill chunk or one token. Ends with RequestFinished when the reply is complete."""
        if sequence.logits is None:
            return self._prefill(sequence)
        return self._decode(sequence)

    def finish(self, sequence: Sequence, reason: FinishReason) -> list[Event]:
        """End the reply here, whatever it holds; settle() must follow."""
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

    def settle(self, sequence: Sequence) -> None:
        """After the reply: go on to where the next message's text will begin, then publish.

        The person is reading meanwhile, and the next turn finds everything but its own text fed.
        """
        lease = sequence.lease
        if lease.side:
            self._cache.abandon(lease)
            return
        if sequence.logits is None:
            # Stopped while the prompt was being read: what is read stays read.
            if sequence.fed > lease.restored:
                self._capture(lease, PointKind.BRANCH)
        elif sequence.num_output:
            try:
                self._feed_closing(sequence)
            except EngineError as error:
                # The template refuses what may come next; what is fed is kept all the same.
                log.info("nothing fed ahead: %s", error)
        self._cache.publish(lease)

    def abandon(self, sequence: Sequence) -> None:
        """After an error: nothing of the request is kept."""
        self._cache.abandon(sequence.lease)

    # Prefill

    def _check_fits(self, prompt: Prompt) -> None:
        limit = self._model.facts.context_len
        needed = len(prompt.token_ids)
        if needed >= limit:
            raise ContextFullError(
                f"It needs {needed:,} tokens and {self._model.facts.name} reads at most {limit:,}."
            )

    def _chunks(self, prompt: Prompt, lease: Lease) -> list[Chunk]:
        points = list(prompt.points)
        if self._model.layout.needs_snapshot and lease.matched > lease.restored:
            # Known tokens without a state: the second edit at this place shall find one.
            points.insert(0, Point(min(lease.matched, len(prompt.token_ids) - 1), PointKind.BRANCH))
        return plan_chunks(
            lease.restored,
            points,
            n_tokens=len(prompt.token_ids),
            cell_len=self._config.cell_len,
            stride_len=self._config.stride_len,
        )

    def _prefill(self, sequence: Sequence) -> list[Event]:
        chunk = sequence.chunks.pop(0)
        lease = sequence.lease
        token_ids = sequence.prompt.token_ids[sequence.fed : chunk.end]
        logits = self._model.adapter.forward(token_ids, lease.hot.caches)
        lease.hot.commit(token_ids)
        # A new conversation has no buffers before its first chunk.
        self._reserve(sequence)
        is_last = not sequence.chunks
        if chunk.kind is not None:
            self._capture(lease, chunk.kind, logits if is_last else None)
        self._evaluate(lease, logits if is_last else None)
        if is_last:
            sequence.logits = logits
            return []
        return [self._progress(sequence)]

    def _reserve(self, sequence: Sequence) -> None:
        """Room for the prompt and a usual reply, or for one more token of a longer one."""
        room = min(sequence.request.max_tokens, _REPLY_ROOM)
        needed = max(len(sequence.prompt.token_ids) + room, sequence.fed + 1)
        self._cache.reserve(sequence.lease, needed)

    def _progress(self, sequence: Sequence) -> PrefillProgress:
        plan = sequence.plan
        done = sequence.fed - plan.restored
        total = plan.prompt_tokens - plan.restored
        elapsed = time.perf_counter() - sequence.clock.restored
        return PrefillProgress(
            sequence.request.request_id, done, total, eta_s=elapsed / done * (total - done)
        )

    def _capture(self, lease: Lease, kind: PointKind, logits: mx.array | None = None) -> None:
        if self._model.layout.needs_snapshot or logits is not None:
            self._cache.capture(lease, kind, logits)

    def _evaluate(self, lease: Lease, logits: mx.array | None) -> None:
        leaves = lease.hot.leaves
        live = [(leaf.keys, leaf.values) for leaf in leaves.kv], [leaf.state for leaf in leaves.aux]
        # A kept point is evaluated with the rest, else it would hold on to all it is computed from.
        kept = (lease.snapshots[-1].states, lease.snapshots[-1].logits) if lease.snapshots else ()
        evaluate(live, kept, logits)

    # Decode

    def _decode(self, sequence: Sequence) -> list[Event]:
        assert sequence.logits is not None
        if sequence.num_output:
            self._reserve(sequence)
            newest = sequence.reply.token_ids[-1:]
            sequence.logits = self._model.adapter.forward(newest, sequence.lease.hot.caches)
            sequence.lease.hot.commit(newest)
        token_id = self._next_token(sequence, sequence.logits)
        now = time.perf_counter()
        if token_id in self._model.prompts.tokenizer.markers.eos_ids:
            return self.finish(sequence, FinishReason.STOP)
        sequence.clock.first_token = sequence.clock.first_token or now
        sequence.clock.last_token = now
        events = self._deltas(sequence, sequence.reply.add(token_id))
        reason = self._limit_reached(sequence)
        return events if reason is None else [*events, *self.finish(sequence, reason)]

    def _next_token(self, sequence: Sequence, logits: mx.array) -> int:
        index = sequence.num_output
        if sequence.request.record_logits:
            evaluate(logits)
            sequence.recorded.append(logits)
        forced = sequence.forced_ids
        if forced is not None:
            evaluate(logits)
            eos = min(self._model.prompts.tokenizer.markers.eos_ids)
            return forced[index] if index < len(forced) else eos
        sampling = sequence.request.sampling
        token_ids = [*sequence.prompt.token_ids[-64:], *sequence.reply.token_ids[-64:]]
        log_probs = sequence.filter(token_ids, logits)
        drawn = draw(log_probs, temperature=sampling.temperature, seed=sampling.seed, index=index)
        token_id = drawn.item()
        assert isinstance(token_id, int)
        return token_id

    def _limit_reached(self, sequence: Sequence) -> FinishReason | None:
        request = sequence.request
        num_tokens = len(sequence.prompt.token_ids) + sequence.num_output
        if request.stop_after is not None and sequence.num_output >= request.stop_after:
            return FinishReason.CANCELLED
        if sequence.num_output >= request.max_tokens or num_tokens >= self._model.facts.context_len:
            return FinishReason.LENGTH
        return None

    def _deltas(self, sequence: Sequence, pieces: Iterable[TextPiece]) -> list[Event]:
        request_id = sequence.request.request_id
        return [
            TextDelta(request_id, piece.channel, piece.text, sequence.num_output)
            for piece in pieces
        ]

    def _forced_ids(self, request: Request, prompt: Prompt) -> tuple[int, ...] | None:
        if request.forced is None:
            return None
        return self._model.prompts.forced_ids(
            request.forced.text, request.forced.reasoning, in_reasoning=prompt.in_reasoning
        )

    # After the reply

    def _feed_closing(self, sequence: Sequence) -> None:
        """Feed the reply's last token and the template's text up to the next message, if it fits.

        Where the template will render the reply differently (thoughts dropped) nothing is fed: the
        next turn goes on from before the reply.
        """
        lease, request = sequence.lease, sequence.request
        reply = sequence.reply.tokens()
        message = Message(
            role=Role.ASSISTANT,
            content=sequence.reply.content,
            reasoning=sequence.reply.reasoning,
            reply=reply,
        )
        upcoming = self._model.prompts.next_turn_ids(
            request.messages, message, thinking=request.thinking
        )
        held = [*sequence.prompt.token_ids, *reply.token_ids]
        closing = upcoming[sequence.fed :]
        room = self._model.facts.context_len - sequence.fed
        if common_prefix_len(held, upcoming) < len(held) or not 0 < len(closing) <= room:
            return
        self._model.adapter.forward(closing, lease.hot.caches)
        lease.hot.commit(closing)
        self._capture(lease, PointKind.TAIL)
        self._evaluate(lease, None)

    def _usage(self, sequence: Sequence) -> Usage:
        clock = sequence.clock
        now = time.perf_counter()
        first = clock.first_token or now
        decode_s = clock.last_token - clock.first_token
        return Usage(
            plan=sequence.plan,
            output_tokens=sequence.num_output,
            queue_ms=(clock.started - clock.submitted) * 1e3,
            render_ms=(clock.rendered - clock.started) * 1e3,
            restore_ms=(clock.restored - clock.rendered) * 1e3,
            prefill_ms=(first - clock.restored) * 1e3,
            ttft_ms=(first - clock.submitted) * 1e3,
            total_ms=(now - clock.submitted) * 1e3,
            decode_tok_s=(sequence.num_output - 1) / decode_s if decode_s > 0 else 0.0,
            cache_bytes=self._cache.ledger().total_bytes,
        )
