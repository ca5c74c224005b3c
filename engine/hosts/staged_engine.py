"""The engine as the app holds it, if its model is divided over several processes or hosts.

    this process                              the process of rank 0
    StagedEngine.send(command)  --socket-->   EngineCore
    on_event(event)             <--socket--   and the other stages behind it

A LoadModel command starts the stages (group.py). Any fault ends them all. Every open request and
the model then fail with one sentence, and the next LoadModel command starts new stages. Stages that
no request needed for long are ended too (Wanted.unload_after_s), and the next request starts them
again. This process imports no mlx: a lost connection of mlx.distributed can block a thread for
good.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from queue import Empty, SimpleQueue

from typing_extensions import override

from engine.cache_figures import NOTHING_CACHED, CacheReport, HeldChats
from engine.commands import EngineCommands
from engine.config import EngineConfig
from engine.disk_deletion import delete
from engine.errors import NoModelError
from engine.events import (
    Answered,
    Command,
    Event,
    LoadModel,
    LoadStage,
    ModelFailed,
    ModelLoaded,
    ModelLoading,
    ModelUnloaded,
    RequestFailed,
    RequestFinished,
    Shutdown,
    StagePhase,
    StagesReported,
    StageState,
    Submit,
    UnloadModel,
    Want,
)
from engine.hosts.group import Group, Limits
from engine.hosts.hostfile import Hosts
from engine.hosts.wire import StageSocket, WireError
from engine.problem import Problem
from engine.questions import (
    Answer,
    AnyQuestion,
    Ask,
    AwaitIdle,
    CheckResult,
    ClearDisk,
    Evict,
    Forget,
    ForgetUnknown,
    MoveToDisk,
    ReportCache,
    ReportChats,
    Verify,
)
from engine.unanswered import Unanswered
from engine.wanted import Wanted

log = logging.getLogger(__name__)

_NO_MODEL = "The model on several Macs is not started."
_LOOK_S = 0.05  # least time between two looks whether running requests have ended
_FINISH_S = 5.0  # seconds for the end of running requests, when the stages end


class _StagesLife:
    """The stages of one model, and the socket to rank 0."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.channel = StageSocket(group.connection)
        self.ended = threading.Event()  # set when rank 0 has closed the socket
        self.is_loaded = False  # True once the model is ready


class StagedEngine(EngineCommands):
    """An engine in stages. All methods may be called from any thread.

    Args:
        config: the settings of the engine.
        hosts: the stages.
        on_event: called with each event, on a thread of this object.
        limits: limits of time for the stages.
        wanted: the first settings. None: those of the config.
    """

    def __init__(
        self,
        config: EngineConfig,
        hosts: Hosts,
        on_event: Callable[[Event], None],
        limits: Limits | None = None,
        wanted: Wanted | None = None,
    ) -> None:
        # The stages must not unload the model: they would keep their processes.
        self._config = replace(config, unload_after_s=None)
        self._hosts = hosts
        self._on_event = on_event
        self._limits = limits or Limits()
        self._commands: SimpleQueue[Command | None] = SimpleQueue()
        self._worker: threading.Thread | None = None
        # Only the thread "stage commands" uses these two fields.
        self._loaded_by: LoadModel | None = None  # the command that started the stages
        # The command that starts the stages again, which were ended because no request came.
        self._idle_load: LoadModel | None = None
        # Protects the fields below. It is held while an event is passed on, so that no event of
        # ended stages follows the events that report their end.
        self._lock = threading.RLock()
        self.wanted = wanted or Wanted.of(config)
        self._life: _StagesLife | None = None  # None while no stages run
        self._unanswered = Unanswered()
        self._requested_at = time.monotonic()  # time of the last request, its end, or the last load

    @property
    def _is_divided(self) -> bool:
        return len(self._hosts.hosts) > 1

    @property
    def is_running(self) -> bool:
        """True while there are stages. A fault ends them."""
        return self._life is not None

    def start(self) -> None:
        """Start the thread that sends commands. The stages start with the first model."""
        self._worker = threading.Thread(target=self._work, name="stage commands", daemon=True)
        self._worker.start()

    @override
    def send(self, command: Command) -> None:
        """Queue a command. LoadModel starts the stages, UnloadModel ends them."""
        self._commands.put(command)

    @override
    def want(self, change: Callable[[Wanted], Wanted]) -> None:
        with self._lock:
            wanted = change(self.wanted)
            if wanted != self.wanted:
                self.wanted = wanted
                self.send(Want(wanted))

    def close(self, timeout_s: float = 30.0) -> None:
        """Cut off running requests, stop idle work, end all stages. A second call does nothing."""
        worker, self._worker = self._worker, None
        if worker is None:
            return
        self._commands.put(None)
        worker.join(timeout_s)
        life = self._life
        if life is not None:
            life.group.close()

    # The thread "stage commands"

    def _work(self) -> None:
        """Carry out commands in their order until None. Only this thread starts and ends stages."""
        while (command := self._next_command()) is not None:
            match command:
                case LoadModel():
                    self._load(command)
                case UnloadModel(until_needed):
                    self._set_aside(self._loaded_by if until_needed else None)
                case Want(wanted):
                    self._forward(Want(wanted.for_stages()))
                case Ask(question):
                    # The stages keep nothing on disk, but engines of earlier runs have.
                    delete(question, self.wanted.disk)
                    self._forward(command)
                case Submit() if self._idle_load is not None:
                    self._load(self._idle_load)
                    self._forward(command)
                case _:
                    self._forward(command)
        self._finish()

    def _next_command(self) -> Command | None:
        """Wait for a command. End the stages meanwhile if no request came for too long."""
        while True:
            try:
                return self._commands.get(timeout=self._idle_left())
            except Empty:
                if self._idle_left() == 0.0:
                    self._set_aside(self._loaded_by)

    def _set_aside(self, idle_load: LoadModel | None) -> None:
        """End the stages. The next request carries out `idle_load`, if it is not None."""
        self._idle_load = idle_load
        self._finish()
        self._pass_on(ModelUnloaded(loads_again=idle_load is not None))

    def _idle_left(self) -> float | None:
        """Return the seconds until the stages may have been idle for too long. None: never."""
        with self._lock:
            life, limit_s = self._life, self.wanted.unload_after_s
            if life is None or limit_s is None:
                return None
            if not life.is_loaded or self._unanswered.has_requests:
                return max(limit_s, _LOOK_S)
            return max(0.0, self._requested_at + limit_s - time.monotonic())

    def _forward(self, command: Command) -> None:
        with self._lock:
            life = self._life
            self._unanswered.note_command(command)
            if isinstance(command, Submit):
                self._requested_at = time.monotonic()
            if life is None:
                self._answer_without_model(command)
                return
        self._send_to(life, command)

    def _send_to(self, life: _StagesLife, command: Command) -> None:
        """Send a command to rank 0. If it has ended, its group reports a fault as the answer."""
        with suppress(OSError):
            life.channel.send(command)

    def _load(self, command: LoadModel) -> None:
        life = self._life
        if life is not None and life.group.path == command.path:
            self._forward(command)
            return
        self._finish()
        self._idle_load, self._loaded_by = None, command
        with self._lock:
            life = self._life = _StagesLife(
                Group(self._hosts, command.path, self._config, self._limits)
            )
            wanted, questions = Want(self.wanted.for_stages()), self._unanswered.take_questions()
            commands = (wanted, *questions, command)
            # Before the start: a group may fail at once, and its fault answers what is noted.
            for one in commands:
                self._unanswered.note_command(one)
        first = LoadStage.CONNECTING if self._is_divided else LoadStage.LOADING
        self._pass_on(ModelLoading(command.path, first, 0.0, 0, 0))
        life.group.start(
            lambda problem: self._on_fault(life, problem),
            lambda stages: self._on_change(life, stages),
        )
        threading.Thread(
            target=self._receive, args=(life,), name="stage events", daemon=True
        ).start()
        for one in commands:
            self._send_to(life, one)

    def _finish(self) -> None:
        """End the stages. Running requests are cut off: they finish with their text so far."""
        life = self._life
        if life is None:
            return
        life.group.expect_end()
        if life.group.has_joined:
            with suppress(OSError):  # rank 0 has ended
                life.channel.send(Shutdown())
            life.ended.wait(_FINISH_S)
        life.group.close()
        with self._lock:
            self._life = None
            for event in self._unanswered.take_failed(NoModelError(_NO_MODEL).problem):
                if isinstance(event, RequestFailed):
                    self._on_event(event)
            self._on_event(StagesReported(()))
            self._answer_questions()

    # Threads of one life

    def _on_fault(self, life: _StagesLife, problem: Problem) -> None:
        """Report a fault, after all stages have ended. Runs on the thread "stages"."""
        with self._lock:
            if life is not self._life:
                return
            self._life = None
            # The failure of the model first: it explains that of the requests.
            for event in reversed(self._unanswered.take_failed(problem)):
                self._on_event(event)
            self._on_event(StagesReported(()))
            self._answer_questions()

    def _on_change(self, life: _StagesLife, stages: tuple[StageState, ...]) -> None:
        """Report the stages and, until the model is loaded, the progress of all together."""
        with self._lock:
            if life is not self._life:
                return
            self._on_event(StagesReported(stages))
            if self._is_divided and any(stage.phase < StagePhase.READY for stage in stages):
                self._on_event(loading_of(life.group.path, stages))

    def _receive(self, life: _StagesLife) -> None:
        """Pass on the events of rank 0 until it closes the socket."""
        try:
            while (event := life.channel.receive(Event)) is not None:
                with self._lock:
                    if life is self._life:
                        self._on_engine_event(life, event)
        except WireError:
            log.exception("an event was damaged")
        life.ended.set()
        life.channel.close()

    def _on_engine_event(self, life: _StagesLife, event: Event) -> None:
        match event:
            case ModelLoading() if self._is_divided:
                # The window shows the progress of all stages together (_on_change).
                life.group.note_loading(event.loaded_bytes, event.total_bytes)
                return
            case ModelLoaded():
                life.is_loaded = True
                self._requested_at = time.monotonic()
                life.group.note_loaded()
                life.group.keep_awake(on=True)
            case ModelFailed():
                life.group.keep_awake(on=False)
            case RequestFinished() | RequestFailed():
                self._requested_at = time.monotonic()
            case _:
                pass
        self._pass_on(event)

    def _pass_on(self, event: Event) -> None:
        with self._lock:
            self._unanswered.note_event(event)
            self._on_event(event)

    # Answers while no stages run

    def _answer_questions(self) -> None:
        for ask in self._unanswered.take_questions():
            self._answer_without_model(ask)

    def _answer_without_model(self, command: Command) -> None:
        match command:
            case Submit(request):
                problem = NoModelError(_NO_MODEL).problem
                self._pass_on(RequestFailed(request.request_id, problem))
            case Ask(question, question_id):
                self._pass_on(Answered(question_id, _answer_to(question)))
            case _:
                pass


def _answer_to(question: AnyQuestion) -> Answer | Problem:
    """Return the answer while no stages run."""
    match question:
        case AwaitIdle():
            return None
        case Verify():
            return _NOT_VERIFIED
        case ReportChats() | MoveToDisk():
            return HeldChats()
        case ReportCache() | Forget() | ForgetUnknown() | ClearDisk() | Evict():
            return CacheReport(NOTHING_CACHED)
        case _:
            return NoModelError(_NO_MODEL).problem


def loading_of(path: str, stages: Sequence[StageState]) -> ModelLoading:
    """Return the progress of loading a divided model, from that of its stages."""
    loaded = sum(stage.loaded_bytes for stage in stages)
    total = sum(stage.total_bytes for stage in stages)
    if not all(stage.loaded_bytes for stage in stages):
        stage = LoadStage.CONNECTING
    else:
        stage = LoadStage.LOADING if loaded < total else LoadStage.CHECKING
    return ModelLoading(path, stage, loaded / total if total else 0.0, loaded, total)


_NOT_VERIFIED = CheckResult(
    prompt_equal=False,
    equal=False,
    max_difference=0.0,
    replay_difference=0.0,
    first_difference=None,
    detail="The stages ended before the check.",
)
