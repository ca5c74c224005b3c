"""The engine's main loop. All of it runs on the engine thread, the only thread that uses mlx.

Each iteration (`EngineCore.step`) carries out the queued commands, then does one bounded piece of
work: a step of the requests (serving.py) or, while no request waits or runs, a step of idle work
(idle.py). Pieces of work are short, so that a command never waits for long. Results are emitted as
events.

This module handles the commands, loads and unloads models, and adjusts the memory budget of the
prefix cache. A model stays loaded until the next LoadModel or UnloadModel command.

    command       running requests   waiting requests                     prefix cache
    LoadModel     are cut off        wait for the new model               kept for the same model
    UnloadModel   are cut off        fail, unless LoadModel follows       dropped
    Shutdown      are cut off        are dropped without an event         dropped

A cut-off request finishes with the text so far (FinishReason.CANCELLED). If a load fails, waiting
requests fail too. If a command raises an error, the error is logged and the engine continues.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import assert_never

import mlx.core as mx

from engine.cache.disk.tier import DiskTier
from engine.cache.prefix_cache import PrefixCache
from engine.checking.audit import AuditJob
from engine.checking.records import Records, recorded_source
from engine.config import EngineConfig
from engine.disk_space import DiskSpace
from engine.errors import Failure, attempt, is_failure, problem_of
from engine.events import (
    AwaitIdle,
    CacheCommand,
    Cancel,
    ClearDisk,
    Command,
    CountTokens,
    Event,
    Evict,
    EvictWhat,
    Forget,
    LoadModel,
    LoadStage,
    MakeTitle,
    ModelCommand,
    ModelFailed,
    ModelLoaded,
    ModelLoading,
    ModelUnloaded,
    Pin,
    ReadAhead,
    ReportStatistics,
    RequestCommand,
    SetDisk,
    SetIdleWork,
    SetMemory,
    SetUnloadAfter,
    Show,
    Shutdown,
    StatisticsReported,
    Submit,
    UnloadModel,
    Verified,
    Verify,
)
from engine.heat import Heat
from engine.idle import Idler, IdleWorker
from engine.memory import (
    MemoryWatch,
    cache_budget,
    fit_to_weights,
    freed_bytes,
    limit_memory,
    process_bytes,
    release_freed,
)
from engine.models.abilities import AbilityRecords, FasterWays, WaysTest
from engine.models.loader import LoadAbandonedError, LoadedModel, load_model, namespace_of
from engine.models.opening import WHOLE, ModelOpener
from engine.power import Battery
from engine.pulse import Pulse
from engine.runner.history import History
from engine.runner.runner import Runner
from engine.runner.speculation import make_drafter
from engine.runner.title import TitleMaker
from engine.scheduler import Scheduler
from engine.serving import Serving
from engine.types import NOTHING_CACHED, ConversationId, RequestId
from engine.waiting import WaitingRequests

log = logging.getLogger(__name__)

# Shortest sleep of an engine without work. Two clocks that differ can't keep it awake.
_LEAST_SLEEP_S = 0.02


def run_core(
    config: EngineConfig,
    commands: SimpleQueue[Command],
    emit: Callable[[Event], None],
    pulse: Pulse,
    opener: ModelOpener = WHOLE,
) -> None:
    """Run the engine loop until a Shutdown command. The engine thread calls this function.

    Args:
        config: the settings of the engine.
        commands: the queue that Engine.send fills from other threads.
        emit: called with each event, on the engine thread. It must neither block nor raise.
        pulse: tells another thread how long the current piece of work has lasted.
        opener: the way in which models are loaded.
    """
    if config.on_cpu:
        mx.set_default_device(mx.Device(mx.cpu))
    try:
        EngineCore(config, commands, emit, pulse, opener).run()
    finally:
        # MLX streams belong to a thread. A thread that ends without clearing its streams makes the
        # process abort at exit.
        mx.clear_streams()


class EngineCore:
    """The state of the engine thread: the loaded model, the prefix cache and the waiting requests.

    `run` repeats `step` until a Shutdown command arrives. Tests call `step` directly.
    """

    def __init__(
        self,
        config: EngineConfig,
        commands: SimpleQueue[Command],
        emit: Callable[[Event], None],
        pulse: Pulse,
        opener: ModelOpener = WHOLE,
    ) -> None:
        self._config = config
        self._opener = opener
        self._commands = commands
        self._emit = emit
        self._pulse = pulse
        # Commands that arrived during a load and are not carried out yet.
        self._deferred: deque[Command] = deque()
        self._scheduler = Scheduler(max_running=config.max_running, max_gap_s=config.max_gap_s)
        self._waiting = WaitingRequests(self._scheduler, emit)
        self._serving: Serving | None = None  # None while no model is loaded
        self.model: LoadedModel | None = None
        self._records = Records()
        self._history = History()
        self._on_battery = on_battery = Battery().in_use if config.saves_battery else lambda: False
        self._heat = Heat() if config.saves_battery else Heat(lambda: 0)
        self._idler = Idler(
            emit, on_battery, enabled=config.idle_work, audit_every_s=config.audit_every_s
        )
        self._stopping = False
        self._write_until: float | None = None  # time of the last write to disk, see Shutdown
        self._unload_after_s = config.unload_after_s
        self._requested_at = time.monotonic()  # time of the last request, or of the last load
        # The command that loaded the model in use.
        self._loaded_by: LoadModel | None = None
        # The command that loads the model again, which was unloaded because no request came. The
        # next request carries it out.
        self._idle_load: LoadModel | None = None
        # Conversations that are pinned in the cache. They are also pinned in the next model's
        # cache.
        self._pinned: set[ConversationId] = set()
        # None before the first cache is created, and always if the config sets a fixed budget.
        self._watch: MemoryWatch | None = None
        # A LoadModel command for the same model keeps the cache and the state of all conversations.
        # A LoadModel command for another model drops the cache, and so does UnloadModel. `model` and
        # `cache` are public for tests.
        self.cache: PrefixCache | None = None
        self._abilities = AbilityRecords(config.abilities_folder)
        # The part of the cache that is on disk. It is opened and closed together with the cache.
        self._disk_space = DiskSpace(config)
        # Fingerprint of the model that the cache belongs to, or that the last cache belonged to if
        # there is no cache now. Another model needs a new cache.
        self._namespace = ""

    @property
    def disk(self) -> DiskTier | None:
        """The cached state on disk. None if no folder is configured, or if it cannot be used."""
        return self._disk_space.tier

    def run(self) -> None:
        """Repeat `step` until a Shutdown command, then drop the model and the cache.

        Requests that are still waiting then get no event.
        """
        while not self._stopping:
            self.step(wait=True)
        self._unload()
        self._drop_cache()

    def step(self, *, wait: bool) -> bool:
        """Carry out all pending commands. Then do one step of the requests or of idle work.

        Serving and Idler turn errors in their work into events or log messages, so a step does not
        raise them. If no model is loaded, all waiting requests fail.

        Args:
            wait: True: if there is no work, wait for a command or for the next memory check.

        Returns:
            True if a command or a piece of work was carried out.
        """
        self._pulse.beat()
        worked = self._drain(wait=wait and not self._has_idle_work and not self._has_requests)
        if self._stopping:
            return worked
        self._check_memory()
        if not self._has_requests:
            return self._unload_idle() or self._work_idly() or self._release_idle() or worked
        self._idler.pause()
        self._requested_at = time.monotonic()
        if self._serving is None and self._idle_load is not None:
            self._load(self._idle_load)
        elif self._serving is None:
            self._waiting.refuse_all()
        else:
            self._serving.step()
        return True

    def _work_idly(self) -> bool:
        """Do a step of idle work. State is written to disk when nothing else is left to do."""
        if self._saves_to_disk and not self._idler.is_busy:
            assert self.disk is not None
            attempt("writing cached state", self.disk.step)
            return True
        return self._idler.step()

    @property
    def _has_idle_work(self) -> bool:
        return self._idler.has_work or self._saves_to_disk

    @property
    def _saves_to_disk(self) -> bool:
        """True if there is state to write to disk now. On battery, it is written at the end."""
        has_work = self.disk is not None and self.disk.has_work
        return has_work and not self._on_battery() and not self._heat.is_high()

    @property
    def _has_requests(self) -> bool:
        is_running = self._serving is not None and self._serving.is_running
        return is_running or bool(self._waiting)

    # Commands from the queue

    def _drain(self, *, wait: bool) -> bool:
        """Carry out all pending commands. Return True if there was any.

        An error in a command is only logged. Commands that report errors to the app, such as
        LoadModel, catch them in their own code.
        """
        worked = False
        while (command := self._next_command(wait=wait)) is not None:
            wait = False
            worked = True
            attempt(type(command).__name__, partial(self._obey, command))
            if self._stopping:
                break
        return worked

    def _next_command(self, *, wait: bool) -> Command | None:
        if self._deferred:
            return self._deferred.popleft()
        try:
            if not wait or not self._commands.empty():
                return self._commands.get(block=False)
            timeout = self.work_in_s
            self._pulse.rest()
            return self._commands.get(timeout=None if timeout == math.inf else timeout)
        except Empty:
            return None
        finally:
            self._pulse.beat()

    @property
    def work_in_s(self) -> float:
        """Seconds until there may be work without a command; infinite if a command must come.

        The system reports no change of memory, battery or heat by an event, so these are looked for
        every memory_check_s while something depends on them.
        """
        config, unused_s = self._config, time.monotonic() - self._requested_at
        times = [self._idler.work_in_s]
        if (rest_s := self._opener.rest()) is not None:
            times.append(rest_s)
        if self.disk is not None:
            # State that is due now waits for the end of battery power or of heat.
            times.append(config.memory_check_s if self.disk.has_work else self.disk.work_in_s)
        if self.model is not None and self._unload_after_s is not None:
            times.append(self._unload_after_s - unused_s)
        if freed_bytes():
            times.append(config.release_after_s - unused_s)
        if self.cache is not None and self._watch is not None and self._watch.must_look(self.cache):
            times.append(config.memory_check_s)
        return max(_LEAST_SLEEP_S, min(times))

    def _obey(self, command: Command) -> None:
        # Log only the name: the fields of a command hold the user's text.
        log.debug("command: %s", type(command).__name__)
        match command:
            case Submit() | Cancel() | CountTokens() | Verify():
                self._obey_request(command)
            case LoadModel() | UnloadModel() | SetUnloadAfter():
                self._obey_model(command)
            case Show():
                self._scheduler.shown = command.conversation_id
                self._idler.obey(command)
            case ReadAhead() | MakeTitle() | SetIdleWork() | AwaitIdle():
                self._idler.obey(command)
            case (
                Pin()
                | Forget()
                | Evict()
                | SetMemory()
                | SetDisk()
                | ClearDisk()
                | ReportStatistics()
            ):
                self._obey_cache(command)
            case Shutdown(until):
                self._stopping = True
                self._write_until = until
            case _:
                assert_never(command)

    def _obey_request(self, command: RequestCommand) -> None:
        match command:
            case Submit():
                self._waiting.add(command)
            case Cancel():
                self._cancel(command.request_id)
            case CountTokens():
                if self._serving is not None:
                    self._emit(self._serving.count_tokens(command.turn))
            case Verify():
                result = self._records.verify(self.model, command)
                self._emit(Verified(command.request_id, result))
            case _:
                assert_never(command)

    def _obey_model(self, command: ModelCommand) -> None:
        match command:
            case LoadModel():
                self._load(command)
            case UnloadModel(until_needed):
                self._set_aside(self._loaded_by if until_needed else None)
            case SetUnloadAfter(seconds):
                self._unload_after_s = seconds
            case _:
                assert_never(command)

    def _cancel(self, request_id: RequestId) -> None:
        if self._serving is not None:
            self._serving.cancel(request_id)
        self._waiting.cancel(request_id)

    def _obey_cache(self, command: CacheCommand) -> None:
        match command:
            case Pin():
                self._pin(command)
                return
            case ReportStatistics():
                self._report_statistics(checks_invariants=command.checks_invariants)
                return
            case Forget():
                self._forget(command)
            case SetMemory(most_bytes):
                self._config = replace(self._config, most_budget_bytes=most_bytes)
                self._fit_budget()
            case SetDisk():
                self._disk_space.configure(command)
                self._share_disk()
            case ClearDisk():
                self._disk_space.clear()
                self._share_disk()
            case Evict():
                # An idle job in progress holds a lease, and leased state is not evicted.
                self._idler.pause()
                if self.cache is not None:
                    _evict(self.cache, command.what)
            case _:
                assert_never(command)
        self._report_statistics()

    def _forget(self, command: Forget) -> None:
        """Drop the state of a conversation. It stays pinned; only Pin commands change that."""
        self._idler.drop(command.conversation_id)
        self._idler.drop_title(command.conversation_id)
        self._history.forget(command.conversation_id)
        if command.on_disk:
            self._disk_space.forget(command.conversation_id)
        if self.cache is not None:
            self.cache.forget(command.conversation_id)
            # Forgotten arrays stay in MLX's buffer cache. Return them to the machine.
            release_freed()

    def _share_disk(self) -> None:
        """Let the requests of the loaded model use the tier that is open now."""
        if self._serving is not None:
            self._serving.runner.disk = self.disk

    def _pin(self, command: Pin) -> None:
        change = self._pinned.add if command.pinned else self._pinned.discard
        change(command.conversation_id)
        if self.cache is not None:
            self.cache.pin(command.conversation_id, pinned=command.pinned)

    def _report_statistics(self, *, checks_invariants: bool = False) -> None:
        statistics, checked = NOTHING_CACHED, None
        if self.cache is not None:
            statistics = self.cache.statistics()
            if checks_invariants:
                checked = attempt("a check of the cache", self.cache.check_invariants)
        self._emit(
            StatisticsReported(
                self._disk_space.with_figures(statistics),
                checked.problem if isinstance(checked, Failure) else None,
                freed_bytes=freed_bytes(),
                process_bytes=process_bytes(),
            )
        )

    # Memory budget of the cache

    def _check_memory(self) -> None:
        """Adapt an automatic cache budget to the machine's available memory, if a check is due.

        The caches of an idle job count towards the budget. The job is paused before the budget
        changes, so that nothing is evicted in favour of it.
        """
        if self.cache is None or self._watch is None:
            return
        adjust = partial(self._watch.adjust_budget, self.cache, self._idler.pause)
        attempt("a change of the budget", adjust)

    def _fit_budget(self) -> None:
        """Give the cache of the loaded model the automatic budget of the present limit."""
        if self.cache is not None and self._watch is not None and self.model is not None:
            full = cache_budget(self._config, self.model.own_weight_bytes)
            self._watch.set_full(full, self.cache, self._idler.pause)

    # Loading and unloading of models

    def _load(self, command: LoadModel) -> None:
        """Replace the current model with that of a command. Emit events about the progress.

        Requests wait during the load. The cache is kept if the same model is loaded again. If a
        Shutdown, LoadModel or UnloadModel command arrives during the load, the load ends early.
        """
        self._unload()
        self._idle_load, self._loaded_by = None, command
        path, kv_bits = Path(command.path), command.kv_bits or self._config.kv_bits
        limit_memory(self._config)
        try:
            namespace = namespace_of(path, kv_bits, self._opener)
            if namespace != self._namespace:
                self._drop_cache()
            # Set this before _serve, which may create a cache and then raise an error.
            self._namespace = namespace
            model = load_model(
                path,
                lambda done, total: self._report_loading(path, done, total),
                kv_bits=kv_bits,
                context_len=command.context_len,
                opener=self._opener,
                records=self._abilities,
            )
            self._serve(model)
        except LoadAbandonedError:
            log.info("a newer command ended the load of %s", path)
            self._emit(ModelUnloaded())
        except BaseException as error:
            if not is_failure(error):
                raise
            log.warning("the model %a could not be loaded", str(path), exc_info=True)
            self._emit(ModelFailed(str(path), problem_of(error)))
            # _serve may have created some of its objects before the error. Drop them too.
            self._unload()
        else:
            self._emit(ModelLoaded(model.facts))

    def _serve(self, model: LoadedModel) -> None:
        """Create the objects that answer requests and do idle work with a loaded model.

        The prefix cache is created only if none was kept.
        """
        if self.cache is None:
            self.cache = self._make_cache(model)
        drafter = make_drafter(model, self._history)
        if not model.others:
            self._disk_space.open(
                self.cache, model.layout, model.adapter.new_caches, self._namespace
            )
        runner = Runner(model, self.cache, self._history, self._config, drafter, recorded_source)
        runner.disk = self.disk
        self._serving = Serving(
            runner, self.cache, self._waiting, self._idler, self._emit, self._records.keep
        )
        audit = partial(AuditJob.start, model, self.cache, self._config.audit_max_tokens)
        title = TitleMaker(runner, model, self.cache, self._config.audit_max_tokens, self._emit)
        ways = WaysTest(model.adapter, model.others, partial(self._use_ways, model))
        self._idler.worker = IdleWorker(
            runner.read_ahead,
            audit,
            test_ways=ways.step if model.abilities.ways is None else None,
            measure_passes=drafter.measure_passes,
            # The caches of other stages are not worth a second copy for a title.
            title=None if model.others else title,
        )
        self.model = model
        self._fit_budget()  # a kept cache has the budget of its own load
        self._requested_at = time.monotonic()
        fit_to_weights(self._config, model.own_weight_bytes)

    def _use_ways(self, model: LoadedModel, ways: FasterWays) -> None:
        """Record the faster ways of the model in use, and use them from the next request on."""
        abilities = replace(model.abilities, ways=ways)
        self._abilities.keep(model.abilities_key, abilities)
        self._serve(replace(model, abilities=abilities))

    def _make_cache(self, model: LoadedModel) -> PrefixCache:
        """Create an empty prefix cache for a model. Pin the pinned conversations in it."""
        budget = cache_budget(self._config, model.own_weight_bytes)
        if self._config.cache_budget_bytes is None:
            self._watch = MemoryWatch(self._config, budget)
        cache = PrefixCache(
            model.layout,
            budget_bytes=budget,
            max_hot=self._config.max_hot,
            on_fault=self._mark_faulted,
            far_budgets=[stage.budget_bytes for stage in model.others],
        )
        for conversation_id in self._pinned:
            cache.pin(conversation_id, pinned=True)
        return cache

    def _mark_faulted(self, token_ids: Sequence[int], num_tokens: int) -> None:
        """Record that the state of token_ids after num_tokens was wrong. Remove it from the disk."""
        self._history.mark_faulted(token_ids, num_tokens)
        self._disk_space.mark_faulty(token_ids, num_tokens)

    def _report_loading(self, path: Path, done: int, total: int) -> None:
        """Emit ModelLoading, and move all newly arrived commands to the list of deferred commands.

        Raises:
            LoadAbandonedError: one of the commands replaces or drops the model.
        """
        self._pulse.beat()
        while True:
            try:
                self._deferred.append(self._commands.get(block=False))
            except Empty:
                break
        fraction = done / total if total else 1.0
        stage = LoadStage.LOADING if done < total else LoadStage.CHECKING
        self._emit(ModelLoading(str(path), stage, fraction, done, total))
        if any(isinstance(c, (Shutdown, LoadModel, UnloadModel)) for c in self._deferred):
            raise LoadAbandonedError

    def _unload_idle(self) -> bool:
        """Unload the model if no request came for too long. Return True if it was unloaded."""
        seconds = self._unload_after_s
        if self.model is None or seconds is None:
            return False
        if time.monotonic() - self._requested_at < seconds:
            return False
        self._set_aside(self._loaded_by)
        return True

    def _set_aside(self, idle_load: LoadModel | None) -> None:
        """Unload the model. The next request carries out `idle_load`, if it is not None."""
        self._idle_load = idle_load
        self._unload()
        self._drop_cache()
        self._emit(ModelUnloaded(is_idle=idle_load is not None))

    def _release_idle(self) -> bool:
        """Return freed memory to the machine if no request came for some seconds.

        Return True if there was any. Call only while there is no idle work: it uses the buffers too.
        """
        if time.monotonic() - self._requested_at < self._config.release_after_s:
            return False
        if not freed_bytes():
            return False
        release_freed()
        return True

    def _unload(self) -> None:
        """Cut off running requests and idle work, then drop the model. Keep the cache.

        A cut-off request finishes with FinishReason.CANCELLED, and its state is published. A
        read-ahead publishes the tokens that it fed. Its task is queued again, and does not reference
        the model. A call without a loaded model is harmless.
        """
        if self._serving is not None:
            self._serving.close()
        self._idler.pause()
        self.model = self._serving = self._idler.worker = None
        self._records.clear()
        release_freed()

    def _drop_cache(self) -> None:
        """Evict all cached state and drop the cache. A call without a cache is harmless.

        No request may run: call _unload first. evict_all would spare the state of a running request.
        """
        self._disk_space.close(until=self._write_until)
        if self.cache is not None:
            self._idler.clear()
            # Tree nodes and their parents reference each other. Without evict_all their arrays
            # would stay in memory until the next garbage collection.
            self.cache.evict_all()
        self.cache = None
        self._history.forget_model()
        release_freed()


def _evict(cache: PrefixCache, what: EvictWhat) -> None:
    match what:
        case EvictWhat.HOT:
            cache.evict_hot()
        case EvictWhat.SNAPSHOTS:
            cache.evict_snapshots()
        case EvictWhat.ALL:
            cache.evict_all()
        case _:
            assert_never(what)
