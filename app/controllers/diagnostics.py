"""Collects the figures for the diagnostics file, without any text of a chat. Main thread."""

from __future__ import annotations

import os
import platform
import sqlite3
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil
from PySide6.QtCore import QObject, Signal, qVersion

from app.bridge.store_lane import StoreLane
from app.bridge.tasks import TaskLane
from app.controllers.exports import Exports
from app.controllers.models import ModelsController
from app.controllers.preferences import Preferences
from app.controllers.storage import Storage
from app.store.conversations import ConversationStore, StoreFigures
from app.viewmodels.diagnostics import diagnostics_text, plain_fields
from app.words import diagnostics as words
from engine.problem import Problem

_PACKAGES = ("rejoinder", "mlx", "mlx-lm", "tokenizers", "numpy", "huggingface-hub")
_LOG_BYTES = 64_000  # bytes from the end of the log
_CRASH_BYTES = 16_000


class Diagnostics(QObject):
    """Writes the diagnostics file."""

    failed = Signal(object)  # argument: a Problem

    def __init__(  # noqa: PLR0913 (each has figures)
        self,
        lane: TaskLane,
        store: StoreLane,
        exports: Exports,
        models: ModelsController,
        preferences: Preferences,
        storage: Storage,
        logs_dir: Path,
    ) -> None:
        super().__init__()
        self._lane = lane
        self._store = store
        self._exports = exports
        self._models = models
        self._preferences = preferences
        self._storage = storage
        self._logs_dir = logs_dir

    def save(self, path: Path) -> None:
        """Write the file. If the database cannot be used, write it without its figures."""
        if self._store.is_lost:
            self._write(path, None)
            return
        self._store.run(
            ConversationStore.figures,
            lambda figures: self._write(path, figures),
            lambda _problem: self._write(path, None),
        )

    def _write(self, path: Path, figures: StoreFigures | None) -> None:
        cached = self._storage.figures
        sections = {
            words.SETTINGS: plain_fields(self._preferences.value),
            words.MODEL: self._model(),
            words.CHATS: {} if figures is None else plain_fields(figures),
            words.CACHE: {} if cached is None else plain_fields(cached),
        }

        def text() -> str:
            everything = {words.VERSIONS: _versions(), words.MACHINE: _machine(), **sections}
            log = _tail(self._logs_dir / "rejoinder.log", _LOG_BYTES)
            return diagnostics_text(everything, log, _crash(self._logs_dir))

        def on_failed(problem: Problem) -> None:
            self.failed.emit(problem)

        self._lane.run(text, lambda text: self._exports.save(path, text), on_failed)

    def _model(self) -> dict[str, object]:
        status = self._models.status
        found = next((one for one in self._models.cards if str(one.path) == status.path), None)
        named: dict[str, object] = {"phase": status.phase.value, "is_unloaded": status.is_unloaded}
        if found is None:
            return named
        return {
            **named,
            "model_type": found.model_type,
            "num_parameters": found.num_parameters,
            "bits": found.bits,
            "size_bytes": found.size_bytes,
            "context_len": found.context_len,
        }


def _versions() -> dict[str, object]:
    found: dict[str, object] = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = words.UNKNOWN
    return {
        **found,
        "qt": qVersion(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


def _machine() -> dict[str, object]:
    system = platform.mac_ver()[0] or platform.release()
    memory = psutil.virtual_memory()
    return {
        "system": f"{platform.system()} {system}",
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "memory_bytes": memory.total,
        "available_bytes": memory.available,
        "process_bytes": psutil.Process().memory_info().rss,
    }


def _tail(path: Path, size: int) -> list[str]:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - size))
            return file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []


def _crash(folder: Path) -> list[str]:
    crashes = sorted(folder.glob("crash.kept-*.log"), key=lambda path: path.stat().st_mtime)
    return _tail(crashes[-1], _CRASH_BYTES) if crashes else []
