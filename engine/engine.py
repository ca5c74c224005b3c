"""The engine's interface for the app: start the engine thread, send commands, receive events.

    main thread                       engine thread
    Engine.send(command)  --queue-->  EngineCore: commands, models, prefix cache, every mlx call
    on_event(event)       <--call---  (the app queues the event to its own thread)

Only immutable objects are passed between the threads. Importing this module does not import mlx.
Importing mlx and mlx-lm takes seconds, so the engine thread does it and the app's window appears at
once.

A native library can end or block the engine thread: a bug in Rust code raises an exception that no
handler expects, and a search can last for hours. In both cases, a new engine thread takes the place
of the old one. Every open request and the loaded model then fail with a sentence, and the next
LoadModel command works as usual.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import assert_never

from typing_extensions import override

from engine.commands import EngineCommands
from engine.config import EngineConfig
from engine.disk_deletion import delete
from engine.early_reading import EarlyReading
from engine.errors import EngineBlockedError, EngineEndedError, LibraryError
from engine.events import (
    Answered,
    Cancel,
    Command,
    Event,
    LoadModel,
    LoadStage,
    ModelFailed,
    ModelLoading,
    ReadAhead,
    RequestFailed,
    Shutdown,
    Submit,
    UnloadModel,
    Want,
    Withdraw,
)
from engine.models.blas import load_openblas
from engine.problem import Problem
from engine.pulse import Pulse
from engine.questions import Ask
from engine.unanswered import Unanswered
from engine.wanted import Wanted

log = logging.getLogger(__name__)

# Environment variables for the libraries that the engine thread imports. They forbid network access
# and suppress hints on stderr.
_LIBRARY_SETTINGS = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "TOKENIZERS_PARALLELISM": "false",
}

# Share of the time for the end of the engine thread in which cached state is written. The rest is
# for the record that is being written then.
_WRITING_SHARE = 0.75
# Seconds that close() waits longer if cached state on disk is to be deleted. The app reports
# deleted chats only once, so a deletion that is not carried out now would never be.
_DELETION_S = 30.0


def prepare_libraries(config: EngineConfig) -> None:
    """Set up the libraries that the engine imports. Call this before they are imported."""
    os.environ.update(_LIBRARY_SETTINGS)
    if config.use_openblas:
        load_openblas()


@dataclass(slots=True, eq=False)
class _ThreadLife:
    """An engine thread, with its command queue and the duration of its current piece of work."""

    early_reading: EarlyReading  # stopped once the thread has imported its libraries
    commands: SimpleQueue[Command] = field(default_factory=SimpleQueue[Command])
    pulse: Pulse = field(default_factory=Pulse)
    thread: threading.Thread | None = None


class Engine(EngineCommands):
    """The engine thread and its command queue. All methods may be called from any thread.

    If mlx or another library cannot be imported, every request and every attempt to load a model
    fails with a LibraryError.

    Args:
        config: the limits of the engine.
        on_event: called with each event, on the engine thread or on the thread that watches it.
        wanted: the first settings. None: those of the config.
        early_reading: the reading of a model's files, if it has begun already.
    """

    def __init__(
        self,
        config: EngineConfig,
        on_event: Callable[[Event], None],
        wanted: Wanted | None = None,
        early_reading: EarlyReading | None = None,
    ) -> None:
        self._config = config
        self._on_event = on_event
        # Protects wanted, _life, _unanswered and _is_over. It is held while an event is passed on,
        # so that no event of a replaced engine thread follows the events that report its end. Code
        # that only reads wanted or _life needs no lock: each is replaced as a whole.
        self._lock = threading.RLock()
        self.wanted = wanted or Wanted.of(config)
        self._life = self._new_life(early_reading or EarlyReading())
        self._unanswered = Unanswered()
        self._closing = threading.Event()
        self._is_over = False  # True once close() has waited: later events are not passed on
        self._watch: threading.Thread | None = None

    def start(self) -> None:
        """Start the engine thread and return at once. The thread first imports its libraries."""
        with self._lock:
            self._start_thread()
        self._watch = threading.Thread(target=self._watch_thread, name="engine watch", daemon=True)
        self._watch.start()

    @override
    def send(self, command: Command) -> None:
        """Queue a command for the engine thread."""
        with self._lock:
            self._unanswered.note_command(command)
            self._life.commands.put(command)
            if isinstance(command, LoadModel):
                self._life.early_reading.start(Path(command.path))

    @override
    def want(self, change: Callable[[Wanted], Wanted]) -> None:
        with self._lock:
            wanted = change(self.wanted)
            if wanted != self.wanted:
                self.wanted = wanted
                self._life.commands.put(Want(wanted))

    def close(self, timeout_s: float = 30.0) -> None:
        """Cut off running requests, stop idle work, then end the engine thread.

        Wait for the thread for at most timeout_s seconds. Cached state that is not written by then
        is lost. Deletions of state on disk are waited for. Open questions are answered with a
        problem. A second call only waits again, if the thread has not ended.
        """
        self._closing.set()
        if self._watch is None:
            return
        with self._lock:
            self._life.pulse.dismiss_watcher()
        self._watch.join()
        self.send(Shutdown(time.monotonic() + timeout_s * _WRITING_SHARE))
        thread = self._life.thread
        assert thread is not None
        thread.join(timeout_s)
        if thread.is_alive() and self._has_deletions():
            thread.join(_DELETION_S)
        if thread.is_alive():
            log.warning("the engine thread did not end within %.1f s", timeout_s)
        ended = EngineEndedError("It was closed.").problem
        with self._lock:
            self._is_over = True
            for ask in self._unanswered.take_questions():
                self._on_event(Answered(ask.question_id, ended))

    def _has_deletions(self) -> bool:
        with self._lock:
            return self._unanswered.has_deletions

    def _new_life(self, early_reading: EarlyReading) -> _ThreadLife:
        """Return a life without a thread, whose first command is the settings."""
        life = _ThreadLife(early_reading)
        life.commands.put(Want(self.wanted))
        return life

    def _start_thread(self) -> None:
        # A daemon thread does not keep the process alive, so a blocked thread lets the app quit.
        life = self._life
        life.thread = threading.Thread(target=self._run, args=(life,), name="engine", daemon=True)
        life.thread.start()

    def _run(self, life: _ThreadLife) -> None:
        emit = partial(self._emit, life)
        emit(ModelLoading("", LoadStage.IMPORTING, 0.0, 0, 0))
        prepare_libraries(self._config)
        try:
            # Import late: importing mlx and mlx-lm takes seconds and must happen on the engine
            # thread.
            from engine.core import run_core  # noqa: PLC0415
        except Exception as error:
            log.exception("the engine thread could not import its libraries")
            self._refuse(life, LibraryError(f"{error}.", details=repr(error)).problem)
            return
        finally:
            life.early_reading.stop()
        try:
            run_core(self._config, life.commands, emit, life.pulse)
        except BaseException as error:
            log.critical("an error ended the engine thread", exc_info=error)
            ended = EngineEndedError(f"It says: {error}.", details=repr(error)).problem
            if life.pulse.has_beaten:
                self._replace(life, ended)
            else:
                # The thread failed before its first step. Another thread would fail as well.
                self._refuse(life, ended)

    def _emit(self, life: _ThreadLife, event: Event) -> None:
        """Pass on an event, unless the engine is closed or another thread has taken its place."""
        with self._lock:
            if life is self._life and not self._is_over:
                self._unanswered.note_event(event)
                self._on_event(event)

    # Replacement of an engine thread that ended or that is blocked

    def _watch_thread(self) -> None:
        """Replace the engine thread if one piece of its work takes more than blocked_after_s."""
        limit_s = self._config.blocked_after_s
        while True:
            life = self._life
            life.pulse.wait_for_work()
            # A blocked piece of work sends no signal. So check its duration again and again.
            if self._closing.wait(min(limit_s / 10, 5.0)):
                return
            if life.pulse.busy_s > limit_s:
                log.critical("the engine thread is blocked for more than %.0f s", limit_s)
                cause = f"One step of its work has taken more than {limit_s:.0f} seconds."
                self._replace(life, EngineBlockedError(cause).problem)

    def _replace(self, life: _ThreadLife, problem: Problem) -> None:
        """Start a new engine thread. Emit `problem` for each open request and for the model."""
        with self._lock:
            if life is not self._life:
                return
            for event in self._unanswered.take_failed(problem):
                self._on_event(event)
            if self._closing.is_set():
                return
            # A blocked thread reads this command if its work ends after all.
            life.commands.put(Shutdown())
            self._life = self._new_life(EarlyReading())
            for command in self._unanswered.take_questions():
                self.send(command)
            self._start_thread()

    def _refuse(self, life: _ThreadLife, problem: Problem) -> None:
        """Answer each request, question and LoadModel command with `problem`. Return on Shutdown.

        Cached state on disk is deleted all the same.
        """
        while True:
            command = life.commands.get()
            match command:
                case Shutdown():
                    return
                case LoadModel(path):
                    self._emit(life, ModelFailed(path, problem))
                case Submit(request):
                    self._emit(life, RequestFailed(request.request_id, problem))
                case Ask(question, question_id):
                    delete(question, self.wanted.disk)
                    self._emit(life, Answered(question_id, problem))
                case UnloadModel() | Cancel() | ReadAhead() | Withdraw() | Want():
                    pass
                case _:
                    assert_never(command)
