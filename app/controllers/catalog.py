"""The models on this computer, as the controllers see them. The engine has the implementation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from engine.catalog.card import ModelCard
from engine.catalog.choose import ModelSuggestion
from engine.catalog.fit import Fit
from engine.catalog.installed import InstalledModel
from engine.catalog.removal import RemovalPlan
from engine.local_models import OpenedModel


class Catalog(Protocol):
    """The model folders of this machine. Every method blocks, so call it on a worker thread."""

    def scan(self, folders: tuple[str, ...]) -> tuple[ModelCard, ...]: ...
    def fingerprint(self, folders: tuple[str, ...]) -> str:
        """Return a value that changes if a new scan would find other models."""
        ...

    def is_there(self, path: str) -> bool:
        """Return True if a model folder is there."""
        ...

    def best(self, cards: tuple[ModelCard, ...]) -> ModelCard | None: ...
    def best_with_room(self, cards: tuple[ModelCard, ...], num_tokens: int) -> ModelCard | None:
        """Return the best of these models for which the memory holds a chat of num_tokens."""
        ...

    def count_hosts(self, memory_bytes: int | None) -> None:
        """Judge models by the memory of several Macs together. None: by that of this one."""
        ...

    def suggestions(self) -> tuple[ModelSuggestion, ...]:
        """Return models to download. Those that suit this machine's memory come first."""
        ...

    def fit(self, config: str, file_bytes: int) -> Fit:
        """Return the fit of a model with this config.json and bytes of weights."""
        ...

    def end_fits(self) -> None:
        """End the process that measures fits. The next measurement starts it again."""
        ...

    def fit_gguf(self, header: Path) -> Fit:
        """Return the fit of a GGUF file of which only the header is there."""
        ...

    def require_importable(self, architecture: str) -> None:
        """Raise an EngineError if GGUF files of an architecture cannot be imported."""
        ...

    def installed(
        self, cards: tuple[ModelCard, ...], folders: tuple[str, ...]
    ) -> tuple[InstalledModel, ...]:
        """Return all models on the disk, GGUF files too."""
        ...

    def plan_removal(
        self, model: InstalledModel, models: tuple[InstalledModel, ...], folders: tuple[str, ...]
    ) -> RemovalPlan:
        """Return what the removal of a model would do."""
        ...

    def remove(self, plan: RemovalPlan, trash: Callable[[Path], None] = ...) -> None:
        """Move the files of a plan to the Trash, with `trash` or with the engine's own function."""
        ...

    def delete(self, plan: RemovalPlan) -> None:
        """Delete the files of a plan for good."""
        ...

    def make_copy(
        self, card: ModelCard, bits: int, progress: Callable[[float], None]
    ) -> OpenedModel:
        """Make a quantised copy of a model in full precision."""
        ...

    def make_starter(self, progress: Callable[[float], None]) -> Path: ...
    def open(
        self, path: Path, folders: tuple[str, ...], progress: Callable[[float], None]
    ) -> OpenedModel:
        """Return the model at a path that the user opened; import a GGUF file first."""
        ...


@dataclass(frozen=True, slots=True)
class ModelScan:
    """The result of a look into the model folders."""

    fingerprint: str
    cards: tuple[ModelCard, ...] | None  # None if they are unchanged
    best: ModelCard | None
    gone: frozenset[str]  # the paths without a model, of those that were checked


def scan_models(
    catalog: Catalog, folders: tuple[str, ...], known: str, paths: Iterable[str]
) -> ModelScan:
    """Scan the model folders, unless their fingerprint is still `known`, and check the paths."""
    gone = frozenset(path for path in paths if not catalog.is_there(path))
    fingerprint = catalog.fingerprint(folders)
    if fingerprint == known:
        return ModelScan(fingerprint, None, None, gone)
    cards = catalog.scan(folders)
    return ModelScan(fingerprint, cards, catalog.best(cards), gone)
