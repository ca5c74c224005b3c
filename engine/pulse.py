"""The time that the engine thread has spent on its current piece of work.

The engine thread calls `beat` and `rest`. Another thread reads `busy_s`, to notice a piece of work
that never ends. It sleeps in `wait_for_work` while the engine thread has no work.
"""

from __future__ import annotations

import threading
import time


class Pulse:
    """A timer that is restarted with each piece of work. Any thread may call its methods."""

    def __init__(self) -> None:
        # Time at which the current piece of work began. None while the engine thread has no work.
        self._since: float | None = None
        self.has_beaten = False  # True once `beat` was called
        self._work_began = threading.Condition()
        self._has_watcher = True

    def beat(self) -> None:
        """Restart the timer, because the engine thread begins its next piece of work."""
        was_resting = self._since is None
        self._since = time.monotonic()
        self.has_beaten = True
        if was_resting:
            with self._work_began:
                self._work_began.notify_all()

    def rest(self) -> None:
        """Stop the timer, because the engine thread waits for a command."""
        self._since = None

    @property
    def busy_s(self) -> float:
        """Seconds since the current piece of work began, 0 while the engine thread has no work."""
        since = self._since
        return 0.0 if since is None else time.monotonic() - since

    def wait_for_work(self) -> None:
        """Block while the engine thread has no work, until `dismiss_watcher` is called."""
        with self._work_began:
            self._work_began.wait_for(lambda: self._since is not None or not self._has_watcher)

    def dismiss_watcher(self) -> None:
        """End `wait_for_work`, now and for good."""
        with self._work_began:
            self._has_watcher = False
            self._work_began.notify_all()
