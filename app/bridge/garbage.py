"""Garbage collection on the main thread only.

By default Python collects garbage on the thread whose allocation reaches the threshold, and
destroys the objects that it finds on that thread. Destroying a Qt object on another thread can
deadlock: the destructor waits for a lock of the main thread, which waits for the interpreter. A
window hung this way, with a collection on the engine thread. Automatic collection is therefore off,
and a timer on the main thread collects instead.
"""

from __future__ import annotations

import gc

from PySide6.QtCore import QObject, QTimer

EVERY_MS = 1000
# New objects before a collection is worth its time. Opening a long conversation makes many objects
# and no garbage: with Python's own threshold of 700 it started fifty collections.
YOUNG = 50_000
# Collections of one generation before the next older one is collected too; Python's own value.
OLDER = 10


class GarbageSearch(QObject):
    """The timer that collects garbage; Python's automatic collection is off until it is closed.

    A process has one GarbageSearch at a time.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        gc.disable()
        self._timer = QTimer(self, interval=EVERY_MS)
        self._timer.timeout.connect(self._look)
        self._timer.start()

    def spare_all(self) -> None:
        """Exclude all present objects from collections, because they live until the app ends."""
        gc.freeze()

    def close(self) -> None:
        self._timer.stop()
        gc.enable()

    def _look(self) -> None:
        young, middle, old = gc.get_count()
        if young > YOUNG:
            gc.collect(2 if old > OLDER else 1 if middle > OLDER else 0)
