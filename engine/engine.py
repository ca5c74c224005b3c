"""The engine as the app holds it. Importing this imports no mlx.

    main thread                       engine thread
    Engine.send(command)  --queue-->  EngineCore: commands, models, prefix cache, every mlx call
    on_event(event)       <--call---  (the app queues it to its own thread)

Only frozen values cross.
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

# For the libraries imported on the engine thread: no network, no advice on stderr.
_LIBRARY_SETTINGS = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "TOKENIZERS_PARALLELISM": "false",
}


class Engine(EngineCommands):
    """Starts and stops the engine thread. All methods may be called from any thread."""

    def __init__(self, config: EngineConfig, on_event: Callable[[Event], None]) -> None:
        self._config = config
        self._on_event = on_event
        self._commands: SimpleQueue[Command] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="engine")

    def start(self) -> None:
        """Returns at once; the libraries are imported on the engine thread."""
        self._thread.start()

    @override
    def send(self, command: Command) -> None:
        """Queue a command; never blocks."""
        self._commands.put(command)

    def close(self, timeout_s: float = 30.0) -> None:
        """Stop what runs, keep what is committed, end the thread. Idempotent."""
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
            # The one late import: mlx and mlx-lm take seconds, and must be imported on this thread.
            from engine.core import run_core  # noqa: PLC0415
        except Exception as error:
            log.exception("the engine's libraries can't be imported")
            self._refuse(LibraryError(f"{error}.", details=repr(error)).problem)
            return
        run_core(self._config, self._commands, self._on_event)

    def _refuse(self, problem: Problem) -> None:
        """Answer loading and requests with the problem until Shutdown."""
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
