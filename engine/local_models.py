"""List, choose, open and import the models on this machine. This module does not import mlx.

All methods read the disk and may block for seconds. The app calls them on worker threads.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, Protocol

import psutil

from engine.catalog import choose, installed, scan
from engine.catalog.card import STARTER_FOLDER, ModelCard, ModelSource
from engine.catalog.choose import ModelSuggestion
from engine.catalog.fit import Fit
from engine.catalog.installed import InstalledModel
from engine.catalog.removal import RemovalPlan, plan_removal, remove as carry_out
from engine.catalog.starter import ensure_starter, find_starter, starter_folder
from engine.catalog.trash import delete, move_to_trash
from engine.config import GIVEN_SHARE, EngineConfig
from engine.copying import make_copy
from engine.errors import ModelFolderError
from engine.fitting import FitMeter

_MAX_MEASURED: Final = 3  # models; a measurement takes up to some seconds
_GGUF_SUFFIX: Final = ".gguf"
_WHAT_CAN_BE_OPENED: Final = "Open a folder that holds a model in MLX format, or a GGUF file."


class ModelPaths(Protocol):
    """The app's own folders that may contain models."""

    @property
    def models_dir(self) -> Path:
        """Folder in which imported GGUF files are stored as model folders."""
        ...

    @property
    def cache_dir(self) -> Path:
        """Folder for data that the app can recreate, such as the starter model."""
        ...

    @property
    def bundle(self) -> Path | None:
        """Read-only resource folder of the bundled app. None if the app runs from a checkout."""
        ...


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """The result of opening a model: its folder, and a folder that later scans must include."""

    path: Path  # the model folder
    # Folder to add to later scans. None if scans already find the model.
    folder: Path | None = None


class LocalModels:
    """The models on this machine. Model folders are used where they are and never copied."""

    def __init__(self, paths: ModelPaths) -> None:
        self._models_dir = paths.models_dir
        self._bundled_starter = paths.bundle and starter_folder(paths.bundle)
        self._imported_starter = starter_folder(paths.cache_dir)
        self._memory_bytes = psutil.virtual_memory().total
        # Bytes that a model may take on all Macs together. None: models run on this machine only.
        self._given_bytes: int | None = None
        self._meter = FitMeter(EngineConfig())

    def count_hosts(self, memory_bytes: int | None) -> None:
        """Judge models by the memory of several Macs together. None: by that of this machine."""
        own = psutil.virtual_memory().total
        self._memory_bytes = own if memory_bytes is None else memory_bytes
        self._given_bytes = None if memory_bytes is None else round(memory_bytes * GIVEN_SHARE)

    def scan(self, folders: tuple[str, ...]) -> tuple[ModelCard, ...]:
        return scan.scan(self._roots(folders))

    def scan_folder(self, path: Path) -> tuple[ModelCard, ...]:
        """Return the models in any folder, which need not be a place of models."""
        return scan.scan([scan.Root(path, ModelSource.FOLDER)])

    def fingerprint(self, folders: tuple[str, ...]) -> str:
        """Return a string that changes whenever the result of `scan` would change."""
        return scan.fingerprint(self._roots(folders))

    def is_there(self, path: str) -> bool:
        """Return True if a model folder is there. The starter model can always be made again."""
        folder = Path(path)
        return folder.name == STARTER_FOLDER or (folder / "config.json").is_file()

    def installed(
        self, cards: tuple[ModelCard, ...], folders: tuple[str, ...]
    ) -> tuple[InstalledModel, ...]:
        """Return all models on the disk with their sizes: those of `scan`, and GGUF files.

        Args:
            cards: the result of `scan`.
            folders: the folders that scans include.
        """
        roots = self._roots(folders)
        return (
            *(installed.of_card(card, roots) for card in cards),
            *installed.find_gguf(roots),
            *installed.find_ollama(self._ollama),
        )

    def plan_removal(
        self, model: InstalledModel, models: tuple[InstalledModel, ...], folders: tuple[str, ...]
    ) -> RemovalPlan:
        """Return what the removal of a model would do.

        Args:
            model: the model.
            models: the result of `installed`.
            folders: the folders that scans include.

        Raises:
            RemovalError: the model must not be removed by the app.
        """
        roots = (*(root.path for root in self._roots(folders)), self._ollama)
        return plan_removal(model, roots, models)

    def remove(self, plan: RemovalPlan, trash: Callable[[Path], None] = move_to_trash) -> None:
        """Carry out a plan of `plan_removal`.

        Args:
            plan: the plan.
            trash: moves a file or a folder to the Trash.

        Raises:
            DiskError: a file cannot be moved or deleted.
            RemovalError: the model has changed since the plan was made.
        """
        carry_out(plan, trash)

    def delete(self, plan: RemovalPlan) -> None:
        """Delete the files of a plan of `plan_removal` for good.

        Raises:
            DiskError: a file cannot be deleted.
            RemovalError: the model has changed since the plan was made.
        """
        carry_out(plan, delete)

    def best(self, cards: tuple[ModelCard, ...]) -> ModelCard | None:
        # On a Mac, quantised weights stay quantised in memory. Elsewhere they are loaded as
        # float32.
        weigh = choose.packed_bytes if sys.platform == "darwin" else choose.float32_bytes
        return choose.best_card(cards, self._memory_bytes, weigh)

    def best_with_room(self, cards: tuple[ModelCard, ...], num_tokens: int) -> ModelCard | None:
        """Return the best of these models for which the memory holds a chat of num_tokens.

        Each model is measured, the best first, at most _MAX_MEASURED of them. A model that cannot
        be measured is passed over.
        """
        with closing(FitMeter(EngineConfig(device_bytes=self._given_bytes))) as meter:
            for _ in range(_MAX_MEASURED):
                card = self.best(cards)
                if card is None:
                    return None
                with suppress(ModelFolderError):
                    if meter.fit_folder(card).can_hold(num_tokens):
                        return card
                cards = tuple(other for other in cards if other is not card)
        return None

    def suggestions(self) -> tuple[ModelSuggestion, ...]:
        """Return models to download. Those that suit this machine's memory come first."""
        return choose.suggest_downloads(self._memory_bytes)

    def fit(self, config: str, file_bytes: int) -> Fit:
        """Return the fit of a model that is not on this machine.

        The process that measures it stays for the next call, until `end_fits`.

        Args:
            config: the text of the model's config.json.
            file_bytes: bytes of the model's weight files.

        Raises:
            UserFixableError: mlx-lm cannot build the model.
        """
        self._meter.config = EngineConfig(device_bytes=self._given_bytes)
        return self._meter.fit_config(config, file_bytes)

    def fit_folder(self, card: ModelCard) -> Fit:
        """Return the fit of a model on this machine.

        Raises:
            ModelFolderError: the model cannot be loaded or measured.
        """
        self._meter.config = EngineConfig(device_bytes=self._given_bytes)
        return self._meter.fit_folder(card)

    def end_fits(self) -> None:
        """End the process that measures fits. The next measurement starts it again."""
        self._meter.close()

    def fit_gguf(self, header: Path) -> Fit:
        """Return the fit of a GGUF file that is not on this machine.

        Args:
            header: a sparse file of the same size that begins with the header of the GGUF file.

        Raises:
            UserFixableError: the file cannot be imported, or mlx-lm cannot build the model.
        """
        # Import late, because numpy is slow to import.
        from engine.gguf.convert import describe_header  # noqa: PLC0415

        return self.fit(*describe_header(header))

    def require_importable(self, architecture: str) -> None:
        """Check that GGUF files of an architecture can be imported.

        Raises:
            GgufError: they cannot.
        """
        # Import late, because numpy is slow to import.
        from engine.gguf.architectures import find_architecture  # noqa: PLC0415

        find_architecture(architecture)

    def make_copy(
        self, card: ModelCard, bits: int, progress: Callable[[float], None]
    ) -> OpenedModel:
        """Make a quantised copy of a model among the app's own models.

        Args:
            card: the model, in full precision.
            bits: bits per weight: 4, 6 or 8.
            progress: called with the finished share, 0 to 1. An error that it raises ends the copy.

        Raises:
            ModelFolderError: the model cannot be loaded or quantised.
            DiskError: there is no room for the copy, or it cannot be written.
        """
        return OpenedModel(make_copy(card, bits, self._models_dir, progress))

    def make_starter(self, progress: Callable[[float], None]) -> Path:
        """Return the starter model's folder. Import the model first if necessary.

        progress is called with the finished share of the import, 0 to 1.
        """
        # Import late: the importer needs numpy, and importing numpy at every start would delay the
        # window.
        from engine.gguf.importer import import_once  # noqa: PLC0415

        return ensure_starter(self._bundled_starter, self._imported_starter, progress, import_once)

    def open(
        self, path: Path, folders: tuple[str, ...], progress: Callable[[float], None]
    ) -> OpenedModel:
        """Open the model at a path that the user chose. A GGUF file is imported first.

        Args:
            path: a model folder, a folder of model folders or a GGUF file.
            folders: the folders that scans include so far.
            progress: called with the finished share of a GGUF file's import, 0 to 1.

        Raises:
            ModelFolderError: the path contains no usable model.
            GgufError: the GGUF file cannot be imported.
            DiskError: the imported model cannot be written.
        """
        if path.is_dir():
            return self._open_folder(path, folders)
        if not path.exists():
            raise ModelFolderError(
                f"There is no file or folder {path}.", advice=_WHAT_CAN_BE_OPENED
            )
        if path.suffix.lower() != _GGUF_SUFFIX:
            raise _no_model(path)
        # Import late: the importer needs numpy, which is slow to import.
        from engine.gguf.importer import import_into  # noqa: PLC0415

        folder = import_into(self._models_dir, path, progress)
        return OpenedModel(folder, folder)

    def _open_folder(self, path: Path, folders: tuple[str, ...]) -> OpenedModel:
        place = os.path.realpath(path)
        listed = [card for card in self.scan(folders) if _lies_in(card, place)]
        cards = listed or self.scan_folder(path)
        usable = tuple(card for card in cards if card.usable)
        if not cards:
            raise _no_model(path)
        if not usable:
            assert cards[0].problem is not None
            raise ModelFolderError.of(cards[0].problem)
        chosen = self.best(usable) or usable[0]
        return OpenedModel(chosen.path, None if listed else path)

    @cached_property
    def _starter(self) -> Path:
        return find_starter(self._bundled_starter, self._imported_starter)

    @property
    def _ollama(self) -> Path:
        return scan.ollama_store(os.environ, Path.home())

    def _roots(self, folders: tuple[str, ...]) -> tuple[scan.Root, ...]:
        paths = tuple(Path(folder) for folder in folders)
        roots = scan.default_roots(self._starter, paths, os.environ, Path.home())
        # Imported files and copies. Older versions stored the starter model there too.
        own = (one for one in self._models_dir.glob("[!.]*") if one.name != STARTER_FOLDER)
        return (*roots, *(scan.Root(one, ModelSource.FOLDER) for one in sorted(own)))


def _no_model(path: Path) -> ModelFolderError:
    cause = f"“{path.name}” is neither a model folder nor a GGUF file."
    return ModelFolderError(cause, advice=_WHAT_CAN_BE_OPENED)


def _lies_in(card: ModelCard, place: str) -> bool:
    return Path(os.path.realpath(card.path)).is_relative_to(place)
