"""Opening of model folders and GGUF files: import if necessary, then load. Main thread.

Paths come from the command line, a double-click, a drop, or the hand-over of a second process. A
file that was downloaded is imported, and not loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.bridge.jobs import JobLane
from app.controllers.catalog import Catalog
from app.controllers.models import ModelsController
from app.controllers.preferences import Preferences
from app.conversation.text import file_label
from app.viewmodels import figures
from app.words import models as words
from engine.local_models import OpenedModel
from engine.model_titles import model_title
from engine.problem import Problem

_GGUF = ".gguf"


class Opening(QObject):
    """The queue of model paths to open, with its own worker thread: an import may take minutes.

    `note` describes the progress of the import, and is empty while no import runs.
    """

    note_changed = Signal()
    refused = Signal(object)  # argument: a Problem
    opened = Signal()  # emitted when a path was opened
    imported = Signal(object)  # argument: Path of a model that import_model() has made

    def __init__(
        self, catalog: Catalog, models: ModelsController, preferences: Preferences
    ) -> None:
        super().__init__()
        self._catalog = catalog
        self._models = models
        self._preferences = preferences
        self._lane = JobLane("opening")
        self.note = ""
        # The GGUF files that are imported or wait for it. Value: progress, 0 to 1.
        self.imports: dict[str, float] = {}

    def open(self, paths: Iterable[Path]) -> None:
        """Open each path in order and load its model; the model of the last path stays in use."""
        for path in paths:
            self._open(path, self._use)

    def import_model(self, path: Path) -> None:
        """Import a GGUF file, and emit `imported`. The model in use stays in use."""
        self._open(path, lambda opened: self.imported.emit(opened.path))

    def close(self) -> None:
        """Cancel a running import, remove its incomplete files, and join the worker thread."""
        self._lane.stop()

    def _open(self, path: Path, act: Callable[[OpenedModel], object]) -> None:
        """Open a path on the worker thread, then call `act` with its model."""
        folders = self._preferences.value.model_folders
        if path.suffix.lower() == _GGUF:
            self._on_progressed(path, 0.0)
        self._lane.start(
            lambda job: self._catalog.open(path, folders, job.report),
            partial(self._on_opened, path, act),
            partial(self._on_failed, path),
            partial(self._on_progressed, path),
        )

    def _on_progressed(self, path: Path, fraction: float) -> None:
        self.imports[str(path)] = fraction
        name = model_title(file_label(path.with_suffix("")))
        self._set_note(words.importing(name=name, percent=figures.percent(fraction)))

    def _on_opened(
        self, path: Path, act: Callable[[OpenedModel], object], opened: OpenedModel
    ) -> None:
        self._end_import(path)
        if opened.folder is not None:
            self._models.add_folder(opened.folder)
        act(opened)

    def _use(self, opened: OpenedModel) -> None:
        self._models.choose(opened.path)
        self.opened.emit()

    def _end_import(self, path: Path) -> None:
        self.imports.pop(str(path), None)
        self._set_note("")

    def _on_failed(self, path: Path, problem: Problem) -> None:
        self._end_import(path)
        self.refused.emit(problem)

    def _set_note(self, note: str) -> None:
        if note != self.note:
            self.note = note
            self.note_changed.emit()
