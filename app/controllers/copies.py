"""Smaller copies of models that are being made, one after the other. Main thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from threading import Event

from PySide6.QtCore import QObject, Qt, Signal

from app.bridge.tasks import TaskLane
from app.controllers.catalog import Catalog
from app.controllers.models import ModelsController
from app.viewmodels.model_offers import ModelCopy
from engine.catalog.card import ModelCard
from engine.errors import EngineError
from engine.local_models import OpenedModel
from engine.problem import Problem


class CopyEndedError(EngineError):
    """The error that ends a copy which was cancelled. It is never shown to the user."""


class Copies(QObject):
    """The queue of copies, with its own worker thread: a copy takes minutes."""

    changed = Signal()
    completed = Signal(object)  # argument: Path of the complete copy
    _progressed = Signal(str, float)  # emitted on the worker thread

    def __init__(self, catalog: Catalog, models: ModelsController) -> None:
        super().__init__()
        self._catalog = catalog
        self._models = models
        self._lane = TaskLane("copying")
        self._ended: dict[str, Event] = {}
        # Key: path of the model of which a copy is made or could not be made.
        self.all: dict[str, ModelCopy] = {}
        self._progressed.connect(self._on_progressed, Qt.ConnectionType.QueuedConnection)

    def make(self, card: ModelCard, bits: int) -> None:
        """Queue a copy of a model, unless a copy of it is being made."""
        key = str(card.path)
        if key in self._ended:
            return
        self._ended[key] = ended = Event()
        self._set(key, ModelCopy(bits=bits, fraction=0.0))
        report = partial(self._report, key, ended)
        call: Callable[[], OpenedModel] = partial(self._catalog.make_copy, card, bits, report)
        self._lane.run(call, partial(self._on_made, key), partial(self._on_failed, key))

    def cancel(self, key: str) -> None:
        """End the copy of a model. What was written is removed."""
        if key in self._ended:
            self._ended[key].set()

    def close(self) -> None:
        """End all copies, and join the worker thread."""
        for ended in self._ended.values():
            ended.set()
        self._lane.stop()

    def _report(self, key: str, ended: Event, fraction: float) -> None:
        """Report the progress of a copy, or end it. Called on the worker thread, several times a second.

        Raises:
            CopyEndedError: the copy was cancelled.
        """
        if ended.is_set():
            raise CopyEndedError(key)
        self._progressed.emit(key, fraction)

    def _on_progressed(self, key: str, fraction: float) -> None:
        if key in self._ended:
            self._set(key, replace(self.all[key], fraction=fraction))

    def _on_made(self, key: str, made: OpenedModel) -> None:
        del self._ended[key], self.all[key]
        self._models.look_again()
        self.changed.emit()
        self.completed.emit(made.path)

    def _on_failed(self, key: str, problem: Problem) -> None:
        was_cancelled = self._ended.pop(key).is_set()
        copy = self.all.pop(key)
        if not was_cancelled:
            self.all[key] = replace(copy, fraction=None, problem=problem)
        self.changed.emit()

    def _set(self, key: str, copy: ModelCopy) -> None:
        self.all[key] = copy
        self.changed.emit()
