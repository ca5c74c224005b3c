"""The folder of the database and the pictures, and its move on request. Main thread.

The move runs on the store thread, between two calls, while the store is closed. The old copy is
kept until the user deletes it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.bridge.engine_bridge import EngineBridge
from app.bridge.jobs import Job
from app.bridge.store_lane import StoreLane
from app.controllers.backups import Backups
from app.controllers.imports import Imports
from app.controllers.turns import Turns
from app.store.backups import backups_of
from app.store.conversations import ConversationStore
from app.store.place import DataPlace
from app.words import storage as words
from engine.problem import Problem, ProblemKind


@dataclass(frozen=True, slots=True)
class BackupFigures:
    """The backups in the folder."""

    count: int
    num_bytes: int


class DataFolder(QObject):
    """The folder of the database, its backups and pictures."""

    changed = Signal()  # the folder, the old copy or the backups
    progressed = Signal(float)  # argument: share of a move that is done
    ended = Signal()  # the move has ended, with or without success
    failed = Signal(object)  # argument: a Problem

    def __init__(
        self,
        bridge: EngineBridge,
        place: DataPlace,
        store: StoreLane,
        turns: Turns,
        imports: Imports,
        backups: Backups,
    ) -> None:
        super().__init__()
        self._engine = bridge.engine
        self._place = place
        self._store = store
        self._turns = turns
        self._imports = imports
        self._backups = backups
        self._move: Job | None = None  # the move that runs
        self.figures = BackupFigures(0, 0)
        backups.changed.connect(self.look)

    @property
    def folder(self) -> Path:
        return self._place.folder

    @property
    def old_folders(self) -> tuple[Path, ...]:
        """The folders with an old copy that was kept after a move."""
        return self._place.old

    @property
    def is_moving(self) -> bool:
        return self._move is not None

    def look(self) -> None:
        """Read the figures of the backups. `changed` is emitted when they have come."""

        def on_figures(figures: BackupFigures) -> None:
            self.figures = figures
            self.changed.emit()

        self._store.run(self._measure, on_figures, self.failed.emit)

    def move(self, folder: Path) -> bool:
        """Begin to move the data into a folder. Return False if that is not possible now."""
        if self.is_moving:
            return False
        if self._turns.num_writing or self._imports.is_running:
            problem = Problem(title=words.BUSY, cause="", advice=words.BUSY_ADVICE)
            self.failed.emit(problem)
            return False
        self._move = job = Job(self.progressed.emit)
        self._backups.hold()
        self._store.move(
            lambda: self._place.move(folder, progress=job.report),
            lambda _none: self._end(),
            self._on_failed,
        )
        return True

    def cancel(self) -> None:
        """Stop the move. The old folder stays in use."""
        if self._move is not None:
            self._move.stop()

    def delete_old(self) -> None:
        """Delete the old copies."""
        self._store.run(
            lambda _store: self._place.delete_old(), lambda _none: self.look(), self.failed.emit
        )

    def _measure(self, _store: ConversationStore) -> BackupFigures:
        sizes = [file.stat().st_size for file in backups_of(self._place.database)]
        return BackupFigures(len(sizes), sum(sizes))

    def _end(self) -> None:
        self._move = None
        folder = str(self._place.pictures.folder)
        self._engine.want(lambda wanted: replace(wanted, picture_folder=folder))
        self._backups.resume()
        self.ended.emit()
        self.look()

    def _on_failed(self, problem: Problem) -> None:
        self._end()
        if problem.kind is not ProblemKind.STOPPED:
            self.failed.emit(problem)
