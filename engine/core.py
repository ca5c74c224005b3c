"""The engine's main loop. All of it runs on the engine thread, the only thread that uses mlx.

Each iteration (`EngineCore.step`) carries out the queued commands, then does one bounded piece of
work: a step of the requests (serving.py) or, while no request waits or runs, a step of idle work
(idle.py). Pieces of work are short, so that a command never waits for long. Results are emitted as
events.

This module handles the commands. served_model.py loads and unloads models, and cache_space.py has
the prefix cache, its budget of memory and its part on disk. A model stays loaded until the next
LoadModel or UnloadModel command, or until it was not used for a time that the user sets
(idle_timeouts.py).

    command       running requests   waiting requests                     prefix cache
    LoadModel     are cut off        wait for the new model               kept for the same model
    UnloadModel   are cut off        fail, unless LoadModel follows       dropped
    Shutdown      are cut off        are dropped without an event         dropped

The app always sends UnloadModel with until_needed. Then waiting requests do not fail, because the
model is loaded again.

A cut-off request finishes with the text so far (FinishReason.CANCELLED). If a load fails, waiting
requests fail too. If a command raises an error, the error is logged and the engine continues.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import assert_never

import mlx.core as mx

from engine.cache.disk.tier import DiskTier
from engine.cache.prefix_cache import PrefixCache
from engine.cache_space import CacheSpace
from engine.config import EngineConfig
from engine.counting import OpenCounts
from engine.errors import Failure, attempt
from engine.events import (
    Answered,
    Cancel,
    Command,
    Event,
    LoadModel,
    LoadStage,
    ModelLoading,
    ReadAhead,
    Shutdown,
    Submit,
    UnloadModel,
    Want,
    Withdraw,
)
from engine.heat import Heat
from engine.idle import Idler
from engine.idle_timeouts import IdleTimeouts
from engine.models.loader import LoadAbandonedError, LoadedModel
from engine.models.opening import WHOLE, ModelOpener
from engine.power import Battery
from engine.pulse import Pulse
from engine.questions import (
    Answer,
    Ask,
    AwaitIdle,
    CacheQuestion,
    CountTokens,
    MakePreview,
    MakeTitle,
    ModelQuestion,
    MoveToDisk,
)
from engine.runner.history import History
from engine.scheduler import Scheduler
from engine.served_model import ServedModel
from engine.waiting import WaitingRequests
from engine.wanted import Wanted

log = logging.getLogger(__name__)

# Shortest sleep of an engine without work. Two clocks differ slightly, so a sleep may end before
# the work is due. Without this minimum, the engine would then repeat such sleeps without a pause.
_LEAST_SLEEP_S = 0.02
# Longest sleep if there may be work later. Python refuses a wait of more than 292 years, and the
# time after which a model is unloaded comes from a file that the user can edit.
_MOST_SLEEP_S = 86_400.0


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
        self._opener = opener
        self._commands = commands
        self._emit = emit
        self._pulse = pulse
        # Commands that arrived during a load and are not carried out yet.
        self._deferred: deque[Command] = deque()
        self._scheduler = Scheduler(max_running=config.max_running, max_gap_s=config.max_gap_s)
        self._waiting = WaitingRequests(self._scheduler, emit)
        self._counts = OpenCounts(emit)
        self._on_battery = on_battery = Battery().in_use if config.saves_battery else lambda: False
        self._heat = Heat() if config.saves_battery else Heat(lambda: 0)
        self._idler = Idler(
            emit, on_battery, enabled=config.idle_work, audit_every_s=config.audit_every_s
        )
        self._stopping = False
        self._write_until: float | None = None  # see Shutdown
        history = History()
        self._caching = CacheSpace(config, history, self._idler)
        self._served = ServedModel(
            config,
            opener,
            self._waiting,
            self._caching,
            history,
            self._idler,
            emit,
            self._report_loading,
        )
        self._timeouts = IdleTimeouts(
            self._served, Wanted.of(config).unload_after_s, config.release_after_s
        )

    # `model`, `cache`, `disk` and `work_in_s` are public for tests.

    @property
    def model(self) -> LoadedModel | None:
        """The loaded model."""
        return self._served.model

    @property
    def cache(self) -> PrefixCache | None:
        """The prefix cache. None before the first load, and after an unload."""
        return self._caching.cache

    @property
    def disk(self) -> DiskTier | None:
        """The cached state on disk. None if no folder is configured, or if it cannot be used."""
        return self._caching.disk

    def run(self) -> None:
        """Repeat `step` until a Shutdown command, then drop the model and the cache.

        Requests that are still waiting then get no event.
        """
        while not self._stopping:
            self.step(wait=True)
        self._served.unload()
        self._caching.drop(write_until=self._write_until)

    def step(self, *, wait: bool) -> bool:
        """Carry out all pending commands. Then do one step of the requests or of idle work.

        Serving and Idler turn errors in their work into events or log messages, so a step does not
        raise them. If no model is loaded, all waiting requests fail.

        Args:
            wait: True: if there is no work, wait for a command, or until there may be work.

        Returns:
            True if a command or a piece of work was carried out.
        """
        self._pulse.beat()
        worked = self._drain(wait=wait and not self._has_idle_work and not self._has_requests)
        if self._stopping:
            return worked
        serving = self._served.serving
        self._caching.check_memory(is_reading=serving is not None and serving.is_reading)
        worked |= self._counts.step(self._served.count_tokens, is_busy=self._has_requests)
        if not self._has_requests:
            # release() comes last, because idle work uses the buffers that it frees.
            return (
                self._timeouts.unload() or self._work_idly() or self._timeouts.release() or worked
            )
        self._idler.make_way()
        self._timeouts.restart()
        if self._served.serving is not None:
            self._served.serving.step()
        elif not self._served.load_again():
            self._waiting.refuse_all()
        return True

    def _work_idly(self) -> bool:
        """Do one step of the first kind of idle work that is left.

        The order: moves to the disk; the running job, and queued read-aheads, previews and titles;
        other writing to the disk; upkeep and audits.
        """
        if self._caching.is_moving:
            if (answered := self._caching.step_move()) is not None:
                self._emit(answered)
            return True
        if self._saves_to_disk and not self._idler.has_job_or_task:
            assert self.disk is not None
            attempt("writing cached state", self.disk.step)
            return True
        return self._idler.step()

    @property
    def _has_idle_work(self) -> bool:
        return (
            self._idler.has_work
            or self._caching.is_moving
            or self._saves_to_disk
            or bool(self._counts)
        )

    @property
    def _saves_to_disk(self) -> bool:
        """True if there is state to write to disk now. On battery, it is written at the end."""
        has_work = self.disk is not None and self.disk.has_work
        return has_work and not self._on_battery() and not self._heat.is_high()

    @property
    def _has_requests(self) -> bool:
        serving = self._served.serving
        return (serving is not None and serving.is_running) or bool(self._waiting)

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
            stages_rest_in_s = self._opener.rest()
            timeout = min(self.work_in_s, stages_rest_in_s or math.inf)
            self._pulse.rest()
            return self._commands.get(timeout=None if timeout == math.inf else timeout)
        except Empty:
            return None
        finally:
            self._pulse.beat()

    @property
    def work_in_s(self) -> float:
        """Seconds until there may be work without a command; infinite if a command must come.

        The work that lets other stages rest is not counted.
        """
        soonest = min(self._idler.work_in_s, self._caching.work_in_s, self._timeouts.work_in_s)
        return soonest if soonest == math.inf else min(max(_LEAST_SLEEP_S, soonest), _MOST_SLEEP_S)

    def _obey(self, command: Command) -> None:
        # Log only the name: the fields of a command hold the user's text.
        log.debug("command: %s", type(command).__name__)
        match command:
            case Submit():
                self._waiting.add(command)
            case Cancel(request_id):
                self._served.cancel(request_id)
            case LoadModel():
                self._served.load(command)
                self._timeouts.restart()
            case UnloadModel(until_needed):
                self._served.set_aside(until_needed=until_needed)
            case ReadAhead():
                self._idler.queue_read_ahead(command)
            case Ask():
                self._answer(command)
            case Withdraw(question_id):
                self._counts.withdraw(question_id)
                self._idler.withdraw(question_id)
            case Want(wanted):
                self._want(wanted)
            case Shutdown(until):
                self._stopping = True
                self._write_until = until
            case _:
                assert_never(command)

    def _want(self, wanted: Wanted) -> None:
        """Replace the settings. Each part acts on the differences."""
        self._timeouts.unload_after_s = wanted.unload_after_s
        self._scheduler.shown = wanted.shown
        self._idler.want(shown=wanted.shown, enabled=wanted.idle_work)
        self._caching.want(wanted)
        self._served.look_for_pictures_in(wanted.picture_folder)

    # Questions

    def _answer(self, ask: Ask) -> None:
        """Answer a question, or add it to those that are answered later."""
        question = ask.question
        match question:
            case AwaitIdle():
                self._idler.await_idle(ask.question_id)
            case MoveToDisk():
                self._caching.move(ask.question_id, question)
            case MakeTitle():
                self._idler.make_title(ask.question_id, question)
            case MakePreview():
                self._idler.make_preview(ask.question_id, question)
            case CountTokens():
                self._counts.add(ask, question)
            case _:
                found = attempt(type(question).__name__, partial(self._answer_now, question))
                answer = found.problem if isinstance(found, Failure) else found
                self._emit(Answered(ask.question_id, answer))

    def _answer_now(self, question: ModelQuestion | CacheQuestion) -> Answer:
        if isinstance(question, ModelQuestion):
            return self._served.answer(question)
        return self._caching.answer(question)

    # Loading and unloading of models

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
        wanted = [c.wanted.shown for c in self._deferred if isinstance(c, Want)]
        self._caching.read_early([self._scheduler.shown, *wanted][-1])
