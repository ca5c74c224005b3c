"""Smaller copies of models that are being made, one after the other. Main thread."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from PySide6.QtCore import QObject, Signal

from app.bridge.jobs import Job, JobLane
from app.controllers.catalog import Catalog
from app.controllers.models import ModelsController
from app.viewmodels.model_offers import ModelCopy
from engine.catalog.card import ModelCard
from engine.local_models import OpenedModel
from engine.problem import Problem, ProblemKind


class Copies(QObject):
    """The queue of copies, with its own worker thread: a copy takes minutes."""

    changed = Signal()
    completed = Signal(object)  # argument: Path of the complete copy

    def __init__(self, catalog: Catalog, models: ModelsController) -> None:
        super().__init__()
        self._catalog = catalog
        self._models = models
        self._lane = JobLane("copying")
        self._jobs: dict[str, Job] = {}
        # Key: path of the model of which a copy is made or could not be made.
        self.all: dict[str, ModelCopy] = {}

    def make(self, card: ModelCard, bits: int) -> None:
        """Queue a copy of a model, unless a copy of it is being made."""
        key = str(card.path)
        if key in self._jobs:
            return
        self._set(key, ModelCopy(bits=bits, fraction=0.0))
        self._jobs[key] = self._lane.start(
            lambda job: self._catalog.make_copy(card, bits, job.report),
            partial(self._on_made, key),
            partial(self._on_failed, key),
            partial(self._on_progressed, key),
        )

    def cancel(self, key: str) -> None:
        """End the copy of a model. What was written is removed."""
        if key in self._jobs:
            self._jobs[key].stop()

    def close(self) -> None:
        """End all copies, and join the worker thread."""
        self._lane.stop()

    def _on_progressed(self, key: str, fraction: float) -> None:
        self._set(key, replace(self.all[key], fraction=fraction))

    def _on_made(self, key: str, made: OpenedModel) -> None:
        del self._jobs[key], self.all[key]
        self._models.look_again()
        self.changed.emit()
        self.completed.emit(made.path)

    def _on_failed(self, key: str, problem: Problem) -> None:
        del self._jobs[key]
        copy = self.all.pop(key)
        if problem.kind is not ProblemKind.STOPPED:
            self.all[key] = replace(copy, fraction=None, problem=problem)
        self.changed.emit()

    def _set(self, key: str, copy: ModelCopy) -> None:
        self.all[key] = copy
        self.changed.emit()
