"""The model folders of this machine as the window and the commands use them. Blocks; no Qt, no mlx."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import psutil

from engine.catalog import choose, scan
from engine.catalog.card import ModelCard
from engine.catalog.starter import ensure_starter


class LocalModels:
    """Finds models in place, chooses one, makes the starter model."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._memory_bytes = psutil.virtual_memory().total

    def scan(self, folders: tuple[str, ...]) -> tuple[ModelCard, ...]:
        return scan.scan(self._roots(folders))

    def fingerprint(self, folders: tuple[str, ...]) -> str:
        """A value that changes when a scan would find something else."""
        return scan.fingerprint(self._roots(folders))

    def best(self, cards: tuple[ModelCard, ...]) -> ModelCard | None:
        # Only on a Mac do weights stay quantised in memory.
        weigh = choose.packed_bytes if sys.platform == "darwin" else choose.float32_bytes
        return choose.best_card(cards, self._memory_bytes, weigh)

    def suggestion(self) -> str:
        """A command for a terminal that downloads a model that fits this machine."""
        command = choose.suggest_download(self._memory_bytes).command
        program, _, rest = command.partition(" ")
        beside = Path(sys.executable).with_name(program)
        if shutil.which(program) is None and beside.exists():
            return f"{shlex.quote(str(beside))} {rest}"
        return command

    def make_starter(self, progress: Callable[[float], None]) -> Path:
        """The starter model's folder, imported if need be."""
        # numpy, which the importer needs, would delay every start of the window.
        from engine.gguf.importer import import_once  # noqa: PLC0415

        return ensure_starter(self._data_dir, progress, import_once)

    def _roots(self, folders: tuple[str, ...]) -> tuple[scan.Root, ...]:
        paths = tuple(Path(folder) for folder in folders)
        return scan.default_roots(self._data_dir, paths, os.environ, Path.home())
