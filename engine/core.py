"""The engine's loop: commands in, one bounded piece of work at a time, events out.

Everything here runs on the engine thread, the only one that touches mlx.
"""

from __future__ import annotations

import gc
import logging
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
    Prewarm,
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
from engine.types import NOTHING_CACHED, ConversationId, FinishReason, Problem, RequestId

log = logging.getLogger(__name__)


class _LoadGivenUpError(Exception):
    """Another command made the loading pointless."""


def run_core(
    config: EngineConfig, commands: SimpleQueue[Command], emit: Callable[[Event], None]
) -> None:
    """The engine thread's whole life."""
    try:
        EngineCore(config, commands, emit).run()
    finally:
        _free_memory()
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
        self._waiting: deque[Submit] = deque()
        self._running: Sequence | None = None
        self.model: LoadedModel | None = None
        self._runner: Runner | None = None
        self._namespace = ""
        self._records = Records()
        self._retried: RequestId | None = None
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
        is_idle = self._running is None and not self._waiting and not self._idler.has_work
        worked = self._drain(wait=wait and is_idle)
        if self._stopping:
            return worked
        self._mind_memory()
        if self._running is not None:
            self._advance(self._running)
        elif self._waiting:
            self._idler.pause()
            self._start(self._waiting.popleft())
        else:
            return self._idler.step() or worked
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
            case Prewarm() | Show() | SetIdleWork() | AwaitIdle():
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
        ahead = len(self._waiting) - 1 + (self._running is not None)
        if ahead:
            self._emit(RequestQueued(submit.request.request_id, ahead))

    def _cancel(self, request_id: RequestId) -> None:
        running = self._running
        if running is not None and running.request.request_id == request_id:
            self._finish(running, FinishReason.CANCELLED)
            return
        for submit in list(self._waiting):
            if submit.request.request_id == request_id:
                self._waiting.remove(submit)
                error = CancelledWaitingError("It was still waiting for its turn.")
                self._emit(RequestFailed(request_id, error.problem))

    # Work

    def _start(self, submit: Submit) -> None:
        request = submit.request
        if self._runner is None:
            error = NoModelError("The request came before a model was ready.")
            self._fail(request.request_id, error.problem)
            return
        try:
            self._running = self._runner.start(request, submit.submitted_at)
        except Exception as error:  # noqa: BLE001 — one request's error ends that request alone
            self._fail_or_retry(submit, error, is_delivered=False)
            return
        log.info("%s", log_line(self._running.plan))
        clock = self._running.clock
        restore_ms = (clock.restored - clock.rendered) * 1e3
        self._emit(RequestStarted(request.request_id, self._running.plan, restore_ms))

    def _advance(self, sequence: Sequence) -> None:
        assert self._runner is not None
        try:
            events = self._runner.step(sequence)
        except Exception as error:  # noqa: BLE001 — one request's error ends that request alone
            self._running = None
            self._abandon(sequence)
            submit = Submit(sequence.request, sequence.clock.submitted)
            self._fail_or_retry(submit, error, is_delivered=sequence.num_output > 0)
            return
        for event in events:
            self._emit(event)
        if events and isinstance(events[-1], RequestFinished):
            self._settle(sequence)

    def _finish(self, sequence: Sequence, reason: FinishReason) -> None:
        assert self._runner is not None
        for event in self._runner.finish(sequence, reason):
            self._emit(event)
        self._settle(sequence)

    def _settle(self, sequence: Sequence) -> None:
        assert self._runner is not None
        self._running = None
        self._records.keep(sequence)
        try:
            upcoming = self._runner.settle(sequence)
        except Exception:
            log.exception("state of %s is lost", sequence.request.conversation_id)
            self._abandon(sequence)
            return
        if sequence.num_output and not sequence.lease.side:
            # What was asked for before this turn is out of date.
            self._idler.drop(sequence.request.conversation_id)
        if upcoming is not None:
            self._idler.put(upcoming)

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
        first_time = request_id != self._retried
        if is_out_of_memory(error) and first_time and not is_delivered and self.cache:
            log.warning("out of memory: trying again without cached conversations")
            self._retried = request_id
            self.cache.evict_all()
            _free_memory()
            self._waiting.appendleft(submit)
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
        if self._running is not None:
            self._finish(self._running, FinishReason.CANCELLED)
        self._idler.pause()
        self.model = self._runner = self._idler.worker = None
        self._records.clear()
        _free_memory()

    def _drop_cache(self) -> None:
        if self.cache is not None:
            self._idler.clear()
        self.cache = None
        self._history.forget_model()
        _free_memory()

    def _close(self) -> None:
        self._unload()
        self._drop_cache()


def _free_memory() -> None:
    gc.collect()
    mx.clear_cache()
