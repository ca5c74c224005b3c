"""Read a model's files from disk while the window is created and the engine imports its libraries.

Both take a second of computation, and need little of the disk. The operating system keeps what was
read in free memory, so the engine thread then copies the weights from there. Importing this module
does not import mlx.
"""

from __future__ import annotations

import logging
import sys
import threading
from pathlib import Path

from engine.plain_file import read_through
from engine.worker.process import WorkerError, shared_worker

log = logging.getLogger(__name__)


class EarlyReading:
    """Two threads that read the files of one model until they are stopped.

    One reads the weights. The other starts the worker process, which imports libraries of its own,
    and lets it read the tokenizer.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_stopped = threading.Event()
        self._has_started = False

    def start(self, folder: Path) -> None:
        """Begin to read the files in a folder. Do nothing after the first call, or `stop`."""
        with self._lock:
            if self._has_started or self._is_stopped.is_set():
                return
            self._has_started = True
        for target in (self._read_weights, self._read_tokenizer):
            threading.Thread(
                target=target, args=(folder,), name="early reading", daemon=True
            ).start()

    def stop(self) -> None:
        """End the reading of weights after the current piece, without waiting for it."""
        with self._lock:
            self._is_stopped.set()

    def _read_tokenizer(self, folder: Path) -> None:
        try:
            shared_worker().rehearse_tokenizer(folder / "tokenizer.json")
        except (OSError, WorkerError) as error:  # the load of the model reports it
            log.info("the tokenizer is not read early: %r", error)

    def _read_weights(self, folder: Path) -> None:
        files = sorted(folder.glob("*.safetensors"))
        nbytes = read_through(files, self._is_stopped, sys.maxsize)
        log.info("%.0f MB of the model were read during the imports", nbytes / 1e6)
