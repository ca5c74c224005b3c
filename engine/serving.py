"""The running requests of the loaded model, from start to published answer. Engine thread only.

The engine loop (core.py) calls `Serving.step` while a request waits or runs. A step is one bounded
piece of work, so that a new command waits for at most one piece:

    start     render the prompt and restore its cached part            Runner.start
    prefill   feed a chunk of one prompt, or a part of a chunk         Runner.read
    decode    draw a token of every answer, all in one pass            Runner.decode
    finish    deliver the answer, then publish the request's state     Runner.finish, publish_turn

A running request is in prefill until its prompt is fed completely, and in decode from then on.
`Sequence.logits` is None exactly while the request is in prefill. While there are requests in both
states, prefill and decode steps alternate. A decode step launches a forward pass, and may return
before the device has computed it. A prefill step between two decode steps first waits for this
pass. Publishing makes the state of a request available to later prompts through the prefix cache.
The prompt of several requests is published as soon as it is read (Request.shares_prompt).

A request that finishes, or is cut off by `cancel` or `close`, emits RequestFinished, and its state
is published. A request that fails emits RequestFailed, and the tokens that it fed are dropped. An
error fails only the request in which it occurred. If memory runs out before the first token of an
answer, all cached state that no running request uses is evicted, and the request starts once more.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from functools import partial

import mlx.core as mx

from engine.cache.prefix_cache import PrefixCache
from engine.errors import Failure, OutOfMemoryError, attempt
from engine.events import (
    Event,
    RequestFailed,
    RequestFinished,
    RequestStarted,
    Submit,
    WaitReason,
)
from engine.idle import Idler
from engine.problem import Problem
from engine.runner.plan import log_line
from engine.runner.runner import Runner
from engine.runner.sequence import Sequence
from engine.scheduler import SHORT_PROMPT
from engine.types import FinishReason, RequestId, chat_of
from engine.waiting import WaitingRequests

log = logging.getLogger(__name__)


class Serving:
    """The running requests of one loaded model. An instance exists while the model is loaded.

    The instance starts waiting requests, advances the running ones and emits their events. The
    prefix cache and the queue of waiting requests are kept when the instance is dropped.
    """

    def __init__(
        self,
        runner: Runner,
        cache: PrefixCache,
        waiting: WaitingRequests,
        idler: Idler,
        emit: Callable[[Event], None],
        on_finished: Callable[[Sequence], None],
    ) -> None:
        """Create an instance without running requests.

        Args:
            runner: runs the prefill and decode steps on the device.
            cache: the prefix cache, which is emptied when memory runs out.
            waiting: the queue that requests are started from.
            idler: receives a read-ahead task after each finished request.
            emit: called with each event.
            on_finished: called with each finished sequence, before its state is published.
        """
        self.runner = runner
        self._cache = cache
        self._waiting = waiting
        self._scheduler = waiting.scheduler
        self._idler = idler
        self._emit = emit
        self._on_finished = on_finished
        self._running: list[Sequence] = []
        # Requests that ran out of memory once and have not ended.
        self._retried: set[RequestId] = set()
        # True if the next waiting request does not fit in memory beside the running ones. The
        # engine tries to start it again when a running request ends. At least one request then
        # runs, because Runner.start returns None only if others run.
        self._is_memory_full = False
        # True if the last step was a decode step. If a prompt is being fed, prefill is next.
        self._has_decoded = False
        # Seconds that the last decode step took, without the wait for its forward pass.
        self._decode_s = 0.0

    @property
    def is_running(self) -> bool:
        """True while any request runs."""
        return bool(self._running)

    @property
    def is_reading(self) -> bool:
        """True while the prompt of any request is read."""
        return any(sequence.is_in_prefill for sequence in self._running)

    def step(self) -> None:
        """Start the next waiting request if possible. Otherwise do one prefill or decode step.

        Call this only if at least one request waits or runs. An error of a request is not raised:
        it is emitted as RequestFailed.
        """
        if not self._start_next():
            self._advance()

    def cancel(self, request_id: RequestId) -> None:
        """Cut off a request if it is running. Keep its answer so far and its cached state.

        A request that is still in prefill finishes with an empty answer. The prompt tokens that it
        fed are published.
        """
        for sequence in list(self._running):
            if sequence.request.request_id == request_id:
                self._finish(sequence, FinishReason.CANCELLED)
        self._retried.discard(request_id)  # the request may wait for its second start

    def close(self) -> None:
        """Cut off all running requests, as `cancel` does. Call before the model is unloaded."""
        for sequence in list(self._running):
            self._finish(sequence, FinishReason.CANCELLED, is_last=True)

    # Start of a request

    def _start_next(self) -> bool:
        reading = [sequence for sequence in self._running if sequence.is_in_prefill]
        submit = None
        if not self._is_memory_full:
            submit = self._waiting.pop_next(self._running, reading)
        if submit is not None and self._start(submit):
            return True
        self._announce_waits(reading)
        return False

    def _announce_waits(self, reading: list[Sequence]) -> None:
        """Report why requests wait: those in the queue, and prompts that another one precedes."""
        reason = self._scheduler.reason(self._running, reading)
        if self._is_memory_full:
            reason = WaitReason.MEMORY
        first = self._scheduler.next_to_read(reading) if reading else None
        # A short prompt is fed so quickly that the other requests get no event about it.
        is_long = first is not None and first.num_unread > SHORT_PROMPT
        held = [one.request.request_id for one in reading if is_long and one is not first]
        behind = None if first is None else first.request.conversation_id
        self._waiting.announce(reason, behind, held)

    def _start(self, submit: Submit) -> bool:
        """Start a request, or fail it if an error occurs.

        Return False if the request must wait until another one ends and frees memory.
        """
        request = submit.request
        sequence = attempt(
            "starting a request",
            lambda: self.runner.start(request, submit.submitted_at, beside=self._running),
        )
        if isinstance(sequence, Failure):
            self._fail_or_retry(submit, sequence, is_delivered=False)
            return True
        if sequence is None:
            # There is not enough memory beside the running requests.
            self._waiting.put_back(submit)
            self._is_memory_full = True
            return False
        self._running.append(sequence)
        log.info("%s", log_line(sequence.plan))
        restore_ms = (sequence.clock.restored - sequence.clock.rendered) * 1e3
        self._emit(RequestStarted(request.request_id, sequence.plan, restore_ms))
        return True

    # Prefill and decode

    def _advance(self) -> None:
        """Do one decode step or one prefill step. Alternate if both kinds of work are pending."""
        reading = [sequence for sequence in self._running if sequence.is_in_prefill]
        is_decoding = len(reading) < len(self._running)
        if is_decoding and not (reading and self._has_decoded):
            self._decode(self._scheduler.piece_s if reading else 0.0)
            self._has_decoded = True
        else:
            self._prefill(self._scheduler.next_to_read(reading), is_alone=not is_decoding)
            self._has_decoded = False

    def _decode(self, beside_s: float) -> None:
        start = time.perf_counter()
        results = attempt("a decode step", lambda: self.runner.decode(beside_s))
        self._decode_s = time.perf_counter() - start
        if isinstance(results, Failure):
            # The error concerns the whole pass, so fail every request that is decoding.
            results = [(one, results) for one in self._running if not one.is_in_prefill]
        for sequence, result in results:
            self._deliver(sequence, result)

    def _prefill(self, sequence: Sequence, *, is_alone: bool) -> None:
        seconds = math.inf
        if not is_alone:
            self._wait_for_decode()
            seconds = self._scheduler.piece_s
        read = partial(self.runner.read, sequence, seconds)
        self._deliver(sequence, attempt("prefill", read))

    def _wait_for_decode(self) -> None:
        """Wait until the launched decode pass is computed, and record the step's duration.

        Without this wait, the measured time of the following prefill piece would include the decode
        pass.
        """
        start = time.perf_counter()
        failed = self.runner.wait()
        self._scheduler.note_decode(self._decode_s + time.perf_counter() - start)
        for sequence, failure in failed:
            self._deliver(sequence, failure)

    def _deliver(self, sequence: Sequence, result: list[Event] | Failure) -> None:
        """Emit the events of a step. If the step failed, fail or retry the request."""
        if isinstance(result, Failure):
            self._remove(sequence)
            self._abandon(sequence)
            submit = Submit(sequence.request, sequence.clock.submitted)
            self._fail_or_retry(submit, result, is_delivered=sequence.num_output > 0)
            return
        for event in result:
            self._emit(event)
        if result and isinstance(result[-1], RequestFinished):
            self._publish(sequence)

    # End of a request

    def _finish(self, sequence: Sequence, reason: FinishReason, *, is_last: bool = False) -> None:
        """Cut off a running request: emit its last events and publish its state.

        Called only for commands that cancel the request or unload the model. core.py logs their
        errors.
        """
        for event in self.runner.finish(sequence, reason):
            self._emit(event)
        self._publish(sequence, is_last=is_last)

    def _publish(self, sequence: Sequence, *, is_last: bool = False) -> None:
        """Publish a finished request's state in the prefix cache, and queue its next read-ahead.

        A side request publishes nothing. `upcoming` is the read-ahead task. It is None if nothing
        is left to read ahead.
        """
        self._remove(sequence)
        self._retried.discard(sequence.request.request_id)
        attempt("an observer of finished requests", lambda: self._on_finished(sequence))
        upcoming = attempt(
            "publishing", lambda: self.runner.publish_turn(sequence, is_last=is_last)
        )
        if isinstance(upcoming, Failure):
            log.warning("the cached state of %s is lost", sequence.request.conversation_id)
            self._abandon(sequence)
            return
        if not sequence.lease.side:
            # The queued read-ahead is older than this turn. After a stop it would continue to feed
            # the prompt.
            self._idler.drop_read_ahead(sequence.request.conversation_id)
        conversation_id = sequence.request.conversation_id
        # Read ahead only for the first of several answers. If the user continues with another one,
        # the app asks for it.
        if upcoming is not None and chat_of(conversation_id) == conversation_id:
            self._idler.queue_read_ahead(upcoming)

    def _abandon(self, sequence: Sequence) -> None:
        """Remove a failed request's tokens from its caches. If this also fails, log the error."""
        attempt("abandoning a request", lambda: self.runner.abandon(sequence))

    def _fail_or_retry(self, submit: Submit, failure: Failure, *, is_delivered: bool) -> None:
        """Fail a request. If memory ran out before its first token, queue it a second time instead.

        Args:
            submit: the command of the request.
            failure: the error that ended the request.
            is_delivered: True if a token of the answer was already delivered.
        """
        request_id = submit.request.request_id
        may_retry = not is_delivered and request_id not in self._retried
        if failure.is_out_of_memory and may_retry:
            log.warning("a request ran out of memory and is retried without cached state")
            self._retried.add(request_id)
            self._cache.evict_all()
            mx.clear_cache()
            self._waiting.put_back(submit)
        else:
            self._retried.discard(request_id)
            problem = _problem_of_answer(failure)
            log.warning("request %s failed: %s", request_id, problem.log_text)
            self._emit(RequestFailed(request_id, problem))

    def _remove(self, sequence: Sequence) -> None:
        """Remove a request from the running ones. Its memory may now allow another to start."""
        self._running.remove(sequence)
        self._is_memory_full = False


def _problem_of_answer(failure: Failure) -> Problem:
    """Return the problem of a failed answer.

    If memory ran out, return the problem of an OutOfMemoryError: its title and advice are about an
    answer. In this case failure.problem is the problem of a MemoryShortError, meant for files.
    """
    if failure.is_expected or not failure.is_out_of_memory:
        return failure.problem
    return OutOfMemoryError(failure.problem.cause, details=failure.problem.details).problem
