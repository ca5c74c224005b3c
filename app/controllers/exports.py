"""Export of text to a file that the user chose. Main thread; a worker thread writes the file."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import QIODevice, QObject, QSaveFile, Signal

from app.bridge.tasks import TaskLane
from app.words import problems as words
from engine.errors import DiskError


class Exports(QObject):
    """The writer of exported files. If writing fails, an existing file is left unchanged."""

    saved = Signal(str)  # argument: name of the saved file
    failed = Signal(object)  # argument: a Problem

    def __init__(self, lane: TaskLane) -> None:
        super().__init__()
        self._lane = lane

    def save(self, path: Path, text: str) -> None:
        self._lane.run(
            partial(write_text, path, text),
            lambda _none: self.saved.emit(path.name),
            self.failed.emit,
        )


def write_text(path: Path, text: str) -> None:
    """Write a text as UTF-8.

    Raises:
        DiskError: the file cannot be written; an existing file is unchanged.
    """
    file = QSaveFile(str(path))
    content = text.encode()
    opened = file.open(QIODevice.OpenModeFlag.WriteOnly)
    if not (opened and file.write(content) == len(content) and file.commit()):
        raise DiskError(words.cannot_write(path, file.errorString()))
