"""The engine's actions once no request came for some time. Engine thread only.

A model that is not used is unloaded, and the next request loads it again. Earlier, memory that MLX
has freed and keeps for reuse goes back to the machine.
"""

from __future__ import annotations

import math
import time

from engine.memory import freed_bytes, release_freed
from engine.served_model import ServedModel


class IdleTimeouts:
    """The time since the last request, and the limits of it."""

    def __init__(
        self, served: ServedModel, unload_after_s: float | None, release_after_s: float
    ) -> None:
        """Start the time.

        Args:
            served: the model to unload.
            unload_after_s: seconds after which the model is unloaded. None: it stays loaded.
            release_after_s: seconds after which freed memory is returned.
        """
        self._served = served
        self.unload_after_s = unload_after_s
        self._release_after_s = release_after_s
        self._requested_at = time.monotonic()

    @property
    def work_in_s(self) -> float:
        """Seconds until the next limit, below 0 if it has passed; infinite if there is none."""
        limits = [math.inf]
        if self._served.model is not None and self.unload_after_s is not None:
            limits.append(self.unload_after_s)
        if freed_bytes():
            limits.append(self._release_after_s)
        return min(limits) - self._unused_s

    def restart(self) -> None:
        """Start the time again: a request runs, or a model was loaded."""
        self._requested_at = time.monotonic()

    def unload(self) -> bool:
        """Unload the model if no request came for too long. Return True if it was unloaded."""
        if self._served.model is None or self.unload_after_s is None:
            return False
        if self._unused_s < self.unload_after_s:
            return False
        self._served.set_aside(until_needed=True)
        return True

    def release(self) -> bool:
        """Return freed memory to the machine if no request came for some seconds.

        Return True if there was any. Call only while there is no idle work: it uses the buffers
        too.
        """
        if self._unused_s < self._release_after_s or not freed_bytes():
            return False
        release_freed()
        return True

    @property
    def _unused_s(self) -> float:
        return time.monotonic() - self._requested_at
