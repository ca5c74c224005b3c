"""The engine's interface for the app: start the engine thread, send commands, receive events.

    main thread                       engine thread
    Engine.send(command)  --queue-->  EngineCore: commands, models, prefix cache, every mlx call
    on_event(event)       <--call---  (the app queues the event to its own thread)

Only immutable objects are passed between the threads. Importing this module does not import mlx.
Importing mlx and mlx-lm takes seconds, so the engine thread does it and the app's window appears at
once.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import assert_never

from typing_extensions import override

from engine.commands import EngineCommands
from engine.config import EngineConfig
from engine.errors import LibraryError
from engine.events import (
    AwaitIdle,
    Cancel,
    Command,
    Event,
    Evict,
    Forget,
    LoadModel,
    LoadStage,
    ModelFailed,
    ModelLoading,
    Pin,
    ReadAhead,
    ReportStatistics,
    RequestFailed,
    SetIdleWork,
    Show,
    Shutdown,
    Submit,
    UnloadModel,
    Verify,
)
from engine.models.blas import load_openblas
from engine.types import Problem

log = logging.getLogger(__name__)

# Environment variables for the libraries that the engine thread imports. They forbid network access
# and suppress hints on stderr.
_LIBRARY_SETTINGS = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "TOKENIZERS_PARALLELISM": "false",
}


class Engine(EngineCommands):
    """The engine thread and its command queue. All methods may be called from any thread.

    The engine thread calls on_event with each event. If mlx or another library cannot be imported,
    every request and every attempt to load a model fails with a LibraryError.
    """

    def __init__(self, config: EngineConfig, on_event: Callable[[Event], None]) -> None:
        self._config = config
        self._on_event = on_event
        self._commands: SimpleQueue[Command] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="engine")

    def start(self) -> None:
        """Start the engine thread and return at once. The thread first imports its libraries."""
        self._thread.start()

    @override
    def send(self, command: Command) -> None:
        """Queue a command for the engine thread. Never block."""
        self._commands.put(command)

    def close(self, timeout_s: float = 30.0) -> None:
        """Finish running requests and idle work, then end the engine thread.

        Wait for the thread for at most timeout_s seconds. A second call does nothing.
        """
        if self._thread.ident is None:
            return
        self.send(Shutdown())
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            log.error("the engine thread did not end within %.0f s", timeout_s)

    def _run(self) -> None:
        self._on_event(ModelLoading("", LoadStage.IMPORTING, 0.0, 0, 0))
        os.environ.update(_LIBRARY_SETTINGS)
        if self._config.use_openblas:
            load_openblas()
        try:
            # Import late: importing mlx and mlx-lm takes seconds and must happen on the engine
            # thread.
            from engine.core import run_core  # noqa: PLC0415
        except Exception as error:
            log.exception("the engine thread could not import its libraries")
            self._refuse(LibraryError(f"{error}.", details=repr(error)).problem)
            return
        run_core(self._config, self._commands, self._on_event)

    def _refuse(self, problem: Problem) -> None:
        """Answer each LoadModel and Submit command with `problem`. Return on Shutdown."""
        while True:
            command = self._commands.get()
            match command:
                case Shutdown():
                    return
                case LoadModel(path):
                    self._on_event(ModelFailed(path, problem))
                case Submit(request):
                    self._on_event(RequestFailed(request.request_id, problem))
                case UnloadModel() | Cancel() | Verify():
                    pass
                case Show() | ReadAhead() | SetIdleWork() | AwaitIdle():
                    pass
                case Pin() | Forget() | Evict() | ReportStatistics():
                    pass
                case _:
                    assert_never(command)
