"""A small record that is written to its file a moment after each change. Main thread."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer

from app.bridge.tasks import TaskLane
from app.store.reading_records import save_record
from engine.problem import Problem

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

SAVE_MS = 2000  # delay before a write, so that several changes in a row cost one

log = logging.getLogger(__name__)


class KeptRecord(QObject):
    """The newest value of a record, and its file.

    A write that fails is only logged: the record is a convenience, and the next change repeats it.
    """

    def __init__(self, path: Path, lane: TaskLane, parent: QObject) -> None:
        super().__init__(parent)
        self._path = path
        self._lane = lane
        self._value: DataclassInstance | None = None
        self._timer = QTimer(self, singleShot=True, interval=SAVE_MS)
        self._timer.timeout.connect(self._save)

    def keep(self, value: DataclassInstance) -> None:
        """Write a value after SAVE_MS, or with the next flush()."""
        self._value = value
        if not self._timer.isActive():
            self._timer.start()

    def flush(self) -> None:
        """Queue a write of an unsaved value now."""
        if self._timer.isActive():
            self._timer.stop()
            self._save()

    def _save(self) -> None:
        if self._value is not None:
            self._lane.run(partial(save_record, self._path, self._value), None, _log_failure)


def _log_failure(problem: Problem) -> None:
    log.warning("a record was not saved: %s", problem)
