"""The engine on the main thread: its events as Qt signals.

Events arrive on the engine thread and wait in a queue; the main thread is woken once per batch and
gets them in order, with the pieces of a reply joined.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol, assert_never

from PySide6.QtCore import QObject, Qt, Signal, Slot

from app.bridge.coalesce import merge_deltas
from engine.commands import EngineCommands
from engine.events import (
    CommandResult,
    Event,
    IdleStopped,
    IdleWorking,
    ModelFailed,
    ModelLoaded,
    ModelLoading,
    ModelUnloaded,
    PrefillProgress,
    RequestFailed,
    RequestFinished,
    RequestQueued,
    RequestStarted,
    StatisticsReported,
    TextDelta,
)

ModelEvent = ModelLoading | ModelLoaded | ModelFailed | ModelUnloaded
RequestEvent = (
    RequestQueued | RequestStarted | PrefillProgress | TextDelta | RequestFinished | RequestFailed
)
IdleEvent = IdleWorking | IdleStopped


class EnginePort(EngineCommands, Protocol):
    """An engine that can be started and closed."""

    def start(self) -> None: ...
    def close(self, timeout_s: float = 30.0) -> None: ...


EngineFactory = Callable[[Callable[[Event], None]], EnginePort]


class EngineBridge(QObject):
    """Owns the engine; lives on the main thread. Commands go to `engine` itself."""

    model_changed = Signal(object)  # ModelEvent
    request_changed = Signal(object)  # RequestEvent
    idle_changed = Signal(object)  # IdleEvent
    statistics_reported = Signal(object)  # StatisticsReported
    _woken = Signal()

    def __init__(self, make_engine: EngineFactory, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._lock = threading.Lock()
        self._pending: deque[Event] = deque()
        self._woken.connect(self._drain, Qt.ConnectionType.QueuedConnection)
        self.engine = make_engine(self._on_engine_event)

    def start(self) -> None:
        """Start the engine thread; call after the window is shown, for it imports for seconds."""
        self.engine.start()

    def close(self) -> None:
        """Stop what runs, join the engine thread, and deliver its last words. Idempotent."""
        self.engine.close()
        self._drain()

    def _on_engine_event(self, event: Event) -> None:
        """Called on the engine thread."""
        with self._lock:
            is_first = not self._pending
            self._pending.append(event)
        if is_first:
            self._woken.emit()

    @Slot()
    def _drain(self) -> None:
        with self._lock:
            events = list(self._pending)
            self._pending.clear()
        for event in merge_deltas(events):
            match event:
                case ModelLoading() | ModelLoaded() | ModelFailed() | ModelUnloaded():
                    self.model_changed.emit(event)
                case IdleWorking() | IdleStopped():
                    self.idle_changed.emit(event)
                case (
                    RequestQueued()
                    | RequestStarted()
                    | PrefillProgress()
                    | TextDelta()
                    | RequestFinished()
                    | RequestFailed()
                ):
                    self.request_changed.emit(event)
                case StatisticsReported():
                    self.statistics_reported.emit(event)
                case CommandResult():
                    pass  # results of commands that only the command line and the benchmarks send
                case _:
                    assert_never(event)
