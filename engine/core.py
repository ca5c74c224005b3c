"""The engine's loop: commands in, one bounded piece of work at a time, events out.

Everything here runs on the engine thread, the only one that touches mlx.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue

import mlx.core as mx

from engine.cache.prefix_cache import PrefixCache
from engine.config import EngineConfig
from engine.errors import CancelledWaitingError, NoModelError, is_out_of_memory, problem_of
from engine.events import (
    AwaitIdle,
    Cancel,
    Command,
    Event,
    Evict,
    EvictWhat,
    Forget,
    LoadModel,
    LoadStage,
    ModelFailed,
    ModelLoaded,
    ModelLoading,
    ModelUnloaded,
    Pin,
    ReadAhead,
    ReportStatistics,
    RequestFailed,
    RequestFinished,
    RequestQueued,
    RequestStarted,
    SetIdleWork,
    Show,
    Shutdown,
    StatisticsReported,
    Submit,
    UnloadModel,
    Verified,
    Verify,
)
from engine.idle import Idler
from engine.memory import MemoryWatch, cache_budget, limit_memory, wire_weights
from engine.models.loader import LoadedModel, load_model, namespace_of
from engine.power import Battery
from engine.records import Records
from engine.runner.history import History
from engine.runner.plan import log_line
from engine.runner.runner import Runner
from engine.runner.sequence import Sequence
from engine.scheduler import Scheduler
from engine.types import NOTHING_CACHED, ConversationId, FinishReason, Problem, RequestId

log = logging.getLogger(__name__)


class _LoadGivenUpError(Exception):
    """Another command made the loading pointless."""


def run_core(
    config: EngineConfig, commands: SimpleQueue[Command], emit: Callable[[Event], None]
) -> None:
    """The engine thread's whole life."""
    if config.on_cpu:
        mx.set_default_device(mx.Device(mx.cpu))
    try:
        EngineCore(config, commands, emit).run()
    finally:
        # Streams are per thread: ending the thread without this aborts the process at its exit.
        mx.clear_streams()


class EngineCore:
    """Owns the model, the prefix cache and the queue of requests."""

    def __init__(
        self,
        config: EngineConfig,
        commands: SimpleQueue[Command],
        emit: Callable[[Event], None],
    ) -> None:
        self._config = config
        self._commands = commands
        self._emit = emit
        self._deferred: deque[Command] = deque()
        self._waiting: list[Submit] = []
        self._running: list[Sequence] = []
        self._ahead: dict[RequestId, int] = {}  # as it was said
        self._scheduler = Scheduler(max_running=config.max_running, max_gap_s=config.max_gap_s)
        self._has_decoded = False  # since a prompt was read
        self._decode_s = 0.0  # of the newest step
        self._waits_for_memory = False  # who would be next, until somebody has ended
        self.model: LoadedModel | None = None
        self._runner: Runner | None = None
        self._namespace = ""
        self._records = Records()
        self._retried: set[RequestId] = set()
        self._history = History()
        on_battery = Battery().in_use if config.saves_battery else lambda: False
        self._idler = Idler(
            emit, on_battery, enabled=config.idle_work, audit_every_s=config.audit_every_s
        )
        self._stopping = False
        self._pinned: set[ConversationId] = set()
        self._watch: MemoryWatch | None = None  # of a budget that was not configured
        self.cache: PrefixCache | None = None

    def run(self) -> None:
        """Work until Shutdown, then let go of every array."""
        while not self._stopping:
            self.step(wait=True)
        self._close()

    def step(self, *, wait: bool) -> bool:
        """Carry out pending commands, then one piece of work.

        Args:
            wait: block for a command when there is nothing to do.

        Returns:
            Whether anything was done.
        """
        is_idle = not self._running and not self._waiting and not self._idler.has_work
        worked = self._drain(wait=wait and is_idle)
        if self._stopping:
            return worked
        self._mind_memory()
        if not self._running and not self._waiting:
            return self._idler.step() or worked
        self._idler.pause()
        if not self._start_next():
            self._advance()
        return True

    # Commands

    def _drain(self, *, wait: bool) -> bool:
        worked = False
        while (command := self._next_command(wait=wait)) is not None:
            wait = False
            worked = True
            self._guarded(command)
            if self._stopping:
                break
        return worked

    def _next_command(self, *, wait: bool) -> Command | None:
        if self._deferred:
            return self._deferred.popleft()
        try:
            # Others may need memory while nothing is going on here.
            timeout = self._config.memory_check_s if self._watch is not None else None
            return self._commands.get(block=wait, timeout=timeout)
        except Empty:
            return None

    def _guarded(self, command: Command) -> None:
        try:
            self._obey(command)
        except Exception:
            log.exception("%s failed", type(command).__name__)

    def _obey(self, command: Command) -> None:
        match command:
            case Submit():
                self._enqueue(command)
            case Cancel(request_id):
                self._cancel(request_id)
            case LoadModel(path):
                self._load(Path(path))
            case UnloadModel():
                self._unload()
                self._drop_cache()
                self._emit(ModelUnloaded())
            case Verify():
                result = self._records.verify(self.model, command)
                self._emit(Verified(command.request_id, result))
            case Shutdown():
                self._stopping = True
            case Pin():
                self._pin(command)
            case ReadAhead() | Show() | SetIdleWork() | AwaitIdle():
                if isinstance(command, Show):
                    self._scheduler.shown = command.conversation_id
                self._idler.obey(command)
            case _:
                self._obey_cache(command)

    def _obey_cache(self, command: Command) -> None:
        cache = self.cache
        if isinstance(command, Forget):
            self._idler.drop(command.conversation_id)
            self._history.forget(command.conversation_id)
        elif isinstance(command, Evict):
            self._idler.pause()
        if cache is None:
            self._emit(StatisticsReported(NOTHING_CACHED))
            return
        match command:
            case Forget(conversation_id):
                cache.forget(conversation_id)
            case Evict(EvictWhat.HOT):
                cache.evict_hot()
            case Evict(EvictWhat.SNAPSHOTS):
                cache.evict_snapshots()
            case Evict(EvictWhat.ALL):
                cache.evict_all()
            case ReportStatistics():
                pass
            case _:
                raise AssertionError(command)
        self._emit(StatisticsReported(cache.statistics()))

    def _pin(self, command: Pin) -> None:
        """Remembered for the next model too."""
        change = self._pinned.add if command.pinned else self._pinned.discard
        change(command.conversation_id)
        if self.cache is not None:
            self.cache.pin(command.conversation_id, pinned=command.pinned)

    def _mind_memory(self) -> None:
        """Hold less while the machine is short of memory."""
        if self.cache is None or self._watch is None:
            return
        try:
            self._watch.mind(self.cache)
        except Exception:
            log.exception("state could not be given up")

    def _enqueue(self, submit: Submit) -> None:
        self._waiting.append(submit)

    def _say_queued(self) -> None:
        """Who still waits, and how many come before."""
        order = self._scheduler.order(self._waiting)
        ahead = {submit.request.request_id: i + 1 for i, submit in enumerate(order)}
        for request_id, num_ahead in ahead.items():
            if self._ahead.get(request_id) != num_ahead:
                self._emit(RequestQueued(request_id, num_ahead))
        self._ahead = ahead

    def _cancel(self, request_id: RequestId) -> None:
        for sequence in list(self._running):
            if sequence.request.request_id == request_id:
                self._finish(sequence, FinishReason.CANCELLED)
        for submit in list(self._waiting):
            if submit.request.request_id == request_id:
                self._waiting.remove(submit)
                error = CancelledWaitingError("It was still waiting for its turn.")
                self._emit(RequestFailed(request_id, error.problem))

    # Work

    def _start_next(self) -> bool:
        """Start a request if one may; the others are told when their place has changed."""
        if not (self._waiting or self._ahead):
            return False
        reading = [sequence for sequence in self._running if sequence.logits is None]
        waiting = [] if self._waits_for_memory else self._waiting
        submit = self._scheduler.next_to_start(waiting, self._running, reading)
        if submit is not None and self._start(submit):
            return True
        self._say_queued()
        return False

    def _start(self, submit: Submit) -> bool:
        """False if it has to wait until another has ended."""
        request = submit.request
        self._waiting.remove(submit)
        if self._runner is None:
            error = NoModelError("The request came before a model was ready.")
            self._fail(request.request_id, error.problem)
            return True
        try:
            sequence = self._runner.start(request, submit.submitted_at, beside=self._running)
        except Exception as error:  # noqa: BLE001 — one request's error ends that request alone
            self._fail_or_retry(submit, error, is_delivered=False)
            return True
        if sequence is None:
            self._waiting.insert(0, submit)
            self._waits_for_memory = True
            return False
        self._running.append(sequence)
        log.info("%s", log_line(sequence.plan))
        restore_ms = (sequence.clock.restored - sequence.clock.rendered) * 1e3
        self._emit(RequestStarted(request.request_id, sequence.plan, restore_ms))
        return True

    def _end(self, sequence: Sequence) -> None:
        self._running.remove(sequence)
        self._waits_for_memory = False

    def _advance(self) -> None:
        """A token of every answer, or a piece of the first prompt: in turn if there are both."""
        reading = [sequence for sequence in self._running if sequence.logits is None]
        is_decoding = len(reading) < len(self._running)
        if is_decoding and not (reading and self._has_decoded):
            self._decode()
            self._has_decoded = True
        else:
            self._read(self._scheduler.order(reading)[0], is_alone=not is_decoding)
            self._has_decoded = False

    def _decode(self) -> None:
        assert self._runner is not None
        start = time.perf_counter()
        try:
            results = self._runner.decode()
        except Exception as error:
            log.exception("no answer can go on")
            results = [(one, error) for one in self._running if one.logits is not None]
        self._decode_s = time.perf_counter() - start
        for sequence, result in results:
            self._take(sequence, result)

    def _wait(self) -> None:
        """What the answers have on the device is done: a prompt's piece is timed for itself."""
        assert self._runner is not None
        start = time.perf_counter()
        failed = self._runner.wait()
        self._scheduler.note_decode(self._decode_s + time.perf_counter() - start)
        for sequence, error in failed:
            self._take(sequence, error)

    def _read(self, sequence: Sequence, *, is_alone: bool) -> None:
        assert self._runner is not None
        seconds = math.inf
        if not is_alone:
            self._wait()
            seconds = self._scheduler.piece_s
        try:
            events = self._runner.read(sequence, seconds)
        except Exception as error:  # noqa: BLE001 — one request's error ends that request alone
            self._take(sequence, error)
            return
        self._take(sequence, events)

    def _take(self, sequence: Sequence, result: list[Event] | Exception) -> None:
        """What a piece of work gave a request."""
        if isinstance(result, Exception):
            self._end(sequence)
            self._abandon(sequence)
            submit = Submit(sequence.request, sequence.clock.submitted)
            self._fail_or_retry(submit, result, is_delivered=sequence.num_output > 0)
            return
        for event in result:
            self._emit(event)
        if result and isinstance(result[-1], RequestFinished):
            self._settle(sequence)

    def _finish(self, sequence: Sequence, reason: FinishReason) -> None:
        assert self._runner is not None
        for event in self._runner.finish(sequence, reason):
            self._emit(event)
        self._settle(sequence)

    def _settle(self, sequence: Sequence) -> None:
        assert self._runner is not None
        self._end(sequence)
        self._records.keep(sequence)
        try:
            upcoming = self._runner.publish_turn(sequence)
        except Exception:
            log.exception("state of %s is lost", sequence.request.conversation_id)
            self._abandon(sequence)
            return
        if sequence.num_output and not sequence.lease.side:
            # What was asked for before this turn is out of date.
            self._idler.drop(sequence.request.conversation_id)
        if upcoming is not None:
            self._idler.queue_read_ahead(upcoming)

    def _abandon(self, sequence: Sequence) -> None:
        """Whatever happens here, the request still gets its end."""
        assert self._runner is not None
        try:
            self._runner.abandon(sequence)
        except Exception:
            log.exception("state of %s is lost", sequence.request.conversation_id)

    def _fail_or_retry(self, submit: Submit, error: Exception, *, is_delivered: bool) -> None:
        """Out of memory before anything was delivered: give up cached state and try once more."""
        request_id = submit.request.request_id
        first_time = request_id not in self._retried
        if is_out_of_memory(error) and first_time and not is_delivered and self.cache:
            log.warning("out of memory: trying again without cached conversations")
            self._retried.add(request_id)
            self.cache.evict_all()
            mx.clear_cache()
            self._waiting.insert(0, submit)
        else:
            self._fail(request_id, problem_of(error))

    def _fail(self, request_id: RequestId, problem: Problem) -> None:
        log.warning("request %s: %s", request_id, problem)
        self._emit(RequestFailed(request_id, problem))

    # Models

    def _load(self, path: Path) -> None:
        """Requests wait meanwhile. The cached state stays if it is the same model again."""
        self._unload()
        limit_memory(self._config)
        try:
            namespace = namespace_of(path, self._config.kv_bits)
            if namespace != self._namespace:
                self._drop_cache()
            model = load_model(
                path,
                lambda done, total: self._report_loading(path, done, total),
                kv_bits=self._config.kv_bits,
            )
            self._adopt(model, namespace)
        except _LoadGivenUpError:
            log.info("loading %s was given up", path)
            self._emit(ModelUnloaded())
            return
        except Exception as error:
            log.warning("loading %s failed", path, exc_info=True)
            self._emit(ModelFailed(str(path), problem_of(error)))
            self.model = self._runner = self._idler.worker = None
            return
        self._emit(ModelLoaded(model.facts))

    def _adopt(self, model: LoadedModel, namespace: str) -> None:
        if self.cache is None:
            budget = cache_budget(self._config, model.facts.weight_bytes)
            if self._config.cache_budget_bytes is None:
                self._watch = MemoryWatch(self._config, budget)
            self.cache = PrefixCache(
                model.layout,
                budget_bytes=budget,
                max_hot=self._config.max_hot,
                on_fault=self._history.mark_faulted,
            )
            for conversation_id in self._pinned:
                self.cache.pin(conversation_id, pinned=True)
        self.model, self._namespace = model, namespace
        self._idler.worker = self._runner = Runner(model, self.cache, self._history, self._config)
        wire_weights()

    def _report_loading(self, path: Path, done: int, total: int) -> None:
        """Progress out; and in: another model or the end of the program makes this one pointless."""
        while True:
            try:
                self._deferred.append(self._commands.get(block=False))
            except Empty:
                break
        fraction = done / total if total else 1.0
        self._emit(ModelLoading(str(path), LoadStage.READING, fraction, done, total))
        if any(isinstance(c, (Shutdown, LoadModel, UnloadModel)) for c in self._deferred):
            raise _LoadGivenUpError

    def _unload(self) -> None:
        for sequence in list(self._running):
            self._finish(sequence, FinishReason.CANCELLED)
        self._idler.pause()
        self.model = self._runner = self._idler.worker = None
        self._records.clear()
        mx.clear_cache()

    def _drop_cache(self) -> None:
        if self.cache is not None:
            self._idler.clear()
            self.cache.evict_all()  # nodes know their parents: dropped whole, they would wait for a collection
        self.cache = None
        self._history.forget_model()
        mx.clear_cache()

    def _close(self) -> None:
        self._unload()
        self._drop_cache()
