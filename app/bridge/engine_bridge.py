"""The engine's face on the main thread: commands down, events up as Qt signals.

Events arrive on the engine thread and wait in a queue; the main thread is woken once per batch and
gets them in order, with the pieces of a reply joined.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from PySide6.QtCore import QObject, Qt, Signal, Slot

from app.bridge.coalesce import merge_deltas
from engine.events import (
    Command,
    Event,
    IdleReached,
    IdleStopped,
    IdleWorking,
    ModelFailed,
    ModelLoaded,
    ModelLoading,
    ModelUnloaded,
    StatisticsReported,
    Verified,
)

ModelEvent = ModelLoading | ModelLoaded | ModelFailed | ModelUnloaded
IdleEvent = IdleWorking | IdleStopped


class EnginePort(Protocol):
    """What the window needs of an engine."""

    def start(self) -> None: ...
    def send(self, command: Command) -> None: ...
    def close(self, timeout_s: float = 30.0) -> None: ...


EngineFactory = Callable[[Callable[[Event], None]], EnginePort]


class EngineBridge(QObject):
    """Owns the engine; lives on the main thread."""

    model_changed = Signal(object)  # ModelEvent
    request_changed = Signal(object)  # an event that carries a request_id
    idle_changed = Signal(object)  # IdleEvent
    _woken = Signal()

    def __init__(self, make_engine: EngineFactory, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._lock = threading.Lock()
        self._pending: deque[Event] = deque()
        self._woken.connect(self._drain, Qt.ConnectionType.QueuedConnection)
        self._engine = make_engine(self._on_engine_event)

    def start(self) -> None:
        """Start the engine thread; call after the window is shown, for it imports for seconds."""
        self._engine.start()

    def send(self, command: Command) -> None:
        self._engine.send(command)

    def close(self) -> None:
        """Stop what runs, join the engine thread, and deliver its last words. Idempotent."""
        self._engine.close()
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
                case StatisticsReported() | Verified() | IdleReached():
                    pass  # asked for by the command line and the benchmarks only
                case _:
                    self.request_changed.emit(event)
