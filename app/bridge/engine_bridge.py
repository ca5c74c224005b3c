"""The bridge between the engine thread and the main thread: engine events as Qt signals.

Core creates the bridge, which creates the engine. Controllers connect to its signals, for example
turns.py to `request_changed`. Commands do not pass through the bridge: a controller calls methods
of `EngineBridge.engine`, which queue a command without blocking. `when_answered` passes the answer
of a question to the controller that put it.

The engine calls back on its own thread for every event. The bridge appends the event to a queue
and, if the queue was empty, posts one wake-up to Qt's event loop. The main thread then takes the
whole queue and joins the text deltas of each reply with coalesce.py. It emits one signal per
remaining event, in the order of the engine. A fast reply therefore costs one wake-up per pass of
the event loop, not one per token.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, assert_never

from PySide6.QtCore import QObject, Qt, Signal, Slot

from app.bridge.coalesce import merge_deltas
from engine.clients import Clients
from engine.commands import Asked, EngineCommands
from engine.events import (
    Answered,
    Event,
    IdleStopped,
    IdleWorking,
    ModelFailed,
    ModelLoaded,
    ModelLoading,
    ModelUnloaded,
    PrefillProgress,
    PreviewProgress,
    RequestFailed,
    RequestFinished,
    RequestQueued,
    RequestStarted,
    StagesReported,
    TextDelta,
)
from engine.hosts.hostfile import Hosts
from engine.problem import Problem

A = TypeVar("A")

IdleEvent = IdleWorking | IdleStopped
# The functions that get the answer of a question, or a Problem in its place.
_Receivers = tuple[Callable[[Any], None], Callable[[Problem], object]]


class EnginePort(EngineCommands, Protocol):
    """The engine as the app uses it: commands, start() and close(). Tests use a fake engine.

    close() ends the engine thread and waits for it, for at most timeout_s seconds, or longer while
    cached state on disk is to be deleted.
    """

    def start(self) -> None: ...
    def close(self, timeout_s: float = 30.0) -> None: ...
    def use_hosts(self, hosts: Hosts | None) -> None:
        """Divide the next model over hosts. None: run it in this process."""
        ...


EngineFactory = Callable[[Callable[[Event], None]], EnginePort]


class EngineBridge(QObject):
    """The link to the engine: starts and closes it, and emits its events on the main thread."""

    model_changed = Signal(object)  # argument: a ModelEvent
    request_changed = Signal(object)  # argument: a RequestEvent
    idle_changed = Signal(object)  # argument: an IdleEvent
    preview_changed = Signal(object)  # argument: a PreviewProgress
    stages_reported = Signal(object)  # argument: a StagesReported
    _woken = Signal()  # emitted on the engine thread, received on the main thread

    def __init__(self, make_engine: EngineFactory, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._lock = threading.Lock()  # protects the two fields below
        self._pending: deque[Event] = deque()
        self._is_closed = False
        self._woken.connect(self._drain, Qt.ConnectionType.QueuedConnection)
        # The receivers of answers to open questions
        self._on_answers: dict[int, _Receivers] = {}
        # The window gets all events except those of requests of other clients, such as the server.
        self.clients = Clients(self._on_engine_event)
        self.engine = make_engine(self.clients.emit)

    def start(self) -> None:
        """Start the engine thread. Call after the first paint: its imports take seconds."""
        self.engine.start()

    def close(self, timeout_s: float = 30.0) -> None:
        """Cancel running requests, join the engine thread and emit its last events. Idempotent.

        Core.close() calls this. It blocks the main thread until the engine thread has ended, or
        for the time of EnginePort.close. Events that come later are never emitted.
        """
        self.engine.close(timeout_s)
        with self._lock:
            self._is_closed = True
        self._drain()

    def when_answered(
        self,
        asked: Asked[A],
        on_answer: Callable[[A], None],
        on_problem: Callable[[Problem], object] = lambda _problem: None,
    ) -> None:
        """Call on_answer on the main thread with the answer of a question.

        Call this before control returns to the event loop, which drops an answer without a
        receiver. If a Problem comes in the place of the answer, call on_problem instead.
        """
        self._on_answers[asked.question_id] = on_answer, on_problem

    def _on_engine_event(self, event: Event) -> None:
        """Queue an event and wake the main thread. Runs on the engine thread.

        The signal is emitted under the lock: once close() has returned, this object may be
        destroyed while the engine thread still runs.
        """
        with self._lock:
            if self._is_closed:
                return
            self._pending.append(event)
            if len(self._pending) == 1:
                self._woken.emit()

    @Slot()
    def _drain(self) -> None:
        """Emit the signals of all queued events. Runs on the main thread."""
        with self._lock:
            events = list(self._pending)
            self._pending.clear()
        for event in merge_deltas(events):
            match event:
                case ModelLoading() | ModelLoaded() | ModelFailed() | ModelUnloaded():
                    self.model_changed.emit(event)
                case IdleWorking() | IdleStopped():
                    self.idle_changed.emit(event)
                case Answered(question_id, answer):
                    self._deliver(self._on_answers.pop(question_id, None), answer)
                case (
                    RequestQueued()
                    | RequestStarted()
                    | PrefillProgress()
                    | TextDelta()
                    | RequestFinished()
                    | RequestFailed()
                ):
                    self.request_changed.emit(event)
                case PreviewProgress():
                    self.preview_changed.emit(event)
                case StagesReported():
                    self.stages_reported.emit(event)
                case _:
                    assert_never(event)

    def _deliver(self, receivers: _Receivers | None, answer: object) -> None:
        """Pass an answer, or a Problem in its place, to the controller that asked."""
        if receivers is not None:
            on_answer, on_problem = receivers
            if isinstance(answer, Problem):
                on_problem(answer)
            else:
                on_answer(answer)
