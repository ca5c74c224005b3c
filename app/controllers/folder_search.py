"""The search of a folder that the user adds to the model folders. Main thread."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.bridge.tasks import TaskLane
from app.controllers.catalog import Catalog
from app.controllers.models import ModelsController


@dataclass(frozen=True, slots=True)
class FoundModels:
    """The models in a folder, GGUF files too."""

    number: int
    num_broken: int  # number of those that cannot be loaded
    cause: str = ""  # why the first of them cannot be loaded


class FolderSearch(QObject):
    """Adds a folder to those that are searched, and reports how many models it has."""

    ended = Signal(object, object)  # arguments: the folder's Path, and a FoundModels

    def __init__(self, models: ModelsController, catalog: Catalog, lane: TaskLane) -> None:
        super().__init__()
        self._models = models
        self._catalog = catalog
        self._lane = lane

    def add(self, folder: Path) -> None:
        self._models.add_folder(folder)
        self._lane.run(lambda: self._count(folder), partial(self.ended.emit, folder))

    def _count(self, folder: Path) -> FoundModels:
        """Count the models in a folder. Runs on the worker thread."""
        searched, place = (str(folder),), os.path.realpath(folder)
        found = self._catalog.installed(self._catalog.scan(searched), searched)
        models = {os.path.realpath(model.path): model for model in found}
        inside = [model for path, model in models.items() if Path(path).is_relative_to(place)]
        cards = [model.card for model in inside if model.card is not None]
        causes = [card.problem.cause for card in cards if card.problem is not None]
        return FoundModels(len(inside), len(causes), next(iter(causes), ""))
