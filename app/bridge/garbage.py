"""Looks for garbage on the main thread and on no other.

Python searches on whatever thread makes one object too many. If that finds something of Qt, it is destroyed
there: it may wait for a lock that the main thread holds while that waits for the interpreter. A window was
seen to hang so for good, with the engine's thread in a search.
"""

from __future__ import annotations

import gc

from PySide6.QtCore import QObject, QTimer

EVERY_MS = 1000
# New objects between two searches. A long conversation is many objects and no garbage: Python's own 700
# searched fifty times while one was opened.
YOUNG = 50_000
OLDER = 10  # searches after which what they spared is looked at again, as Python has it


class GarbageSearch(QObject):
    """One at a time; Python's own searches rest while it is there."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        gc.disable()
        self._timer = QTimer(self, interval=EVERY_MS)
        self._timer.timeout.connect(self._look)
        self._timer.start()

    def spare_all(self) -> None:
        """What is there now stays to the end: no search need look at it again."""
        gc.freeze()

    def close(self) -> None:
        self._timer.stop()
        gc.enable()

    def _look(self) -> None:
        young, middle, old = gc.get_count()
        if young > YOUNG:
            gc.collect(2 if old > OLDER else 1 if middle > OLDER else 0)
