"""The search of a folder that the user adds to the model folders. Main thread."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.bridge.tasks import TaskLane
from app.controllers.catalog import Catalog
from app.controllers.models import ModelsController


class FolderSearch(QObject):
    """Adds a folder to those that are searched, and reports how many models it has."""

    ended = Signal(object, int)  # arguments: the folder's Path, and the number of its models

    def __init__(self, models: ModelsController, catalog: Catalog, lane: TaskLane) -> None:
        super().__init__()
        self._models = models
        self._catalog = catalog
        self._lane = lane

    def add(self, folder: Path) -> None:
        self._models.add_folder(folder)
        self._lane.run(lambda: self._count(folder), partial(self.ended.emit, folder))

    def _count(self, folder: Path) -> int:
        """Return the number of models in a folder, GGUF files too. Runs on the worker thread."""
        searched, place = (str(folder),), os.path.realpath(folder)
        found = self._catalog.installed(self._catalog.scan(searched), searched)
        paths = {os.path.realpath(model.path) for model in found}
        return sum(Path(path).is_relative_to(place) for path in paths)
