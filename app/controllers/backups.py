"""The daily backup of the database, and the check of a large one, in idle time. Main thread.

A thread of its own copies the database with a connection of its own, so neither the main thread nor
the store's thread waits for it. The copy is not begun while an answer or an import runs, and it is
stopped when one begins: the next look begins again. A look follows a minute after a use of the
database, and after midnight. Without either there is none, so a resting app sleeps.
"""

from __future__ import annotations

import logging
from datetime import datetime, time, timedelta
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from app.bridge.jobs import JobLane
from app.bridge.store_lane import StoreLane
from app.controllers.imports import Imports
from app.controllers.origin import Origin
from app.controllers.turns import Turns
from app.store.backups import check_database, make_backup
from app.store.place import DataPlace
from engine.problem import Problem, ProblemKind

log = logging.getLogger(__name__)

LOOK_MS = 60_000  # time from a use of the database, or from midnight, until the next look


class Backups(QObject):
    """Makes a backup on each day on which the database has changed."""

    changed = Signal()  # a backup was made
    failed = Signal(object)  # argument: a Problem

    def __init__(
        self, place: DataPlace, store: StoreLane, turns: Turns, imports: Imports, origin: Origin
    ) -> None:
        super().__init__()
        self._place = place
        self._store = store
        self._turns = turns
        self._imports = imports
        self._origin = origin
        self._lane = JobLane("backup")
        self.is_running = False
        self._is_held = False
        self._has_failed = False  # True after a failure was shown, until a backup is made
        store.unchecked.connect(self._check)
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self.look)
        store.used.connect(self._look_soon)
        turns.activity_changed.connect(self._stop_if_busy)
        imports.progressed.connect(self._stop_if_busy)

    def start(self) -> None:
        self._timer.start(LOOK_MS)

    def look(self) -> None:
        """Make a backup if one is due and the app is idle."""
        self._timer.start(LOOK_MS)  # a copy that is stopped or fails is begun again
        if self.is_running or self._is_held or self._is_busy:
            return
        self.is_running = True
        database, now = self._place.database, self._origin.now()
        self._lane.start(
            lambda job: make_backup(database, now=now, stop=job.stopped),
            self._on_made,
            self._on_failed,
        )

    def _check(self) -> None:
        """Read the whole database on the backup's thread, because its last run did not close it."""
        database = self._place.database
        self._lane.start(
            lambda job: check_database(database, job.stopped),
            lambda _none: self._store.run(lambda store: store.note_checked()),
            self._on_failed,
        )

    def hold(self) -> None:
        """Stop the running copy, and begin none until resume()."""
        self._is_held = True
        self._lane.stop_jobs()

    def resume(self) -> None:
        self._is_held = False

    def close(self) -> None:
        """Stop the running copy, and join the thread."""
        self._timer.stop()
        self._lane.stop()

    @property
    def _is_busy(self) -> bool:
        return self._turns.num_writing > 0 or self._imports.is_running

    def _look_soon(self) -> None:
        """Look a minute from now, unless a look comes before or start() was not called."""
        if self._timer.remainingTime() > LOOK_MS:
            self._timer.start(LOOK_MS)

    def _on_made(self, path: Path | None) -> None:
        self.is_running = False
        self._timer.start(_until_midnight_ms(self._origin.now()) + LOOK_MS)
        if path is not None:
            log.info("made the backup %s", path.name)
            self._has_failed = False
            self.changed.emit()

    def _on_failed(self, problem: Problem) -> None:
        self.is_running = False
        if problem.kind is ProblemKind.DAMAGED:
            self._store.run(lambda store: store.note_damage())
        if problem.kind is not ProblemKind.STOPPED and not self._has_failed:
            self._has_failed = True
            self.failed.emit(problem)

    def _stop_if_busy(self) -> None:
        if self._is_busy:
            self._lane.stop_jobs()


def _until_midnight_ms(now: float) -> int:
    """Return the milliseconds from a Unix time until the next day begins."""
    today = datetime.fromtimestamp(now).astimezone()
    midnight = datetime.combine(today.date() + timedelta(days=1), time()).astimezone()
    return round((midnight - today).total_seconds() * 1000)
