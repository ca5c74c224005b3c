"""Garbage collection on the main thread only.

By default Python collects garbage within any allocation, and destroys the objects that it finds
there. To destroy a Qt object can then deadlock:

- On another thread, the destructor waits for a lock that the main thread holds, and the main thread
  waits for Python's interpreter lock. A window hung this way, when the engine thread collected
  garbage.
- On the main thread, a destructor of Qt that calls Python code holds a lock, and the destructor of
  an object that is found meanwhile waits for it. A test hung this way.

Automatic collection is therefore off for good, and a timer on the main thread collects instead. The
timer runs only once enough new objects exist, so it never wakes a resting process.
"""

from __future__ import annotations

import gc

from PySide6.QtCore import QAbstractEventDispatcher, QObject, QTimer

# Shortest time between two collections.
EVERY_MS = 1000
# Number of new objects after which a collection starts. Python's default of 700 caused fifty
# useless collections when a long conversation was opened.
YOUNG = 50_000
# Number of collections of one generation before the next older generation is collected too:
# Python's default.
OLDER = 10


class GarbageSearch(QObject):
    """The collector of garbage. Turns Python's automatic collection off.

    A process has one GarbageSearch at a time.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        gc.disable()
        self._timer = QTimer(self, singleShot=True, interval=EVERY_MS)
        self._timer.timeout.connect(self._collect)
        self._dispatcher = QAbstractEventDispatcher.instance()
        self._dispatcher.awake.connect(self._look)

    def spare_all(self) -> None:
        """Exclude all existing objects from collections, because they live until the app ends."""
        gc.freeze()

    def close(self) -> None:
        """Collect no more. Automatic collection stays off, because Qt objects may still exist."""
        self._dispatcher.awake.disconnect(self._look)
        self._timer.stop()

    def _look(self) -> None:
        """Start the timer if there are enough new objects. Called whenever the event loop wakes."""
        if gc.get_count()[0] > YOUNG and not self._timer.isActive():
            self._timer.start()

    def _collect(self) -> None:
        _young, middle, old = gc.get_count()
        gc.collect(2 if old > OLDER else 1 if middle > OLDER else 0)
