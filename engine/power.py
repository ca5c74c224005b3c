"""Detection of battery power. Idle work uses it to save energy."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Protocol, cast

import psutil

log = logging.getLogger(__name__)

# Seconds for which a result is reused. A query costs a system call or a few file reads. This is too
# slow to repeat before every step of idle work.
ASK_EVERY_S = 5.0


class _Charge(Protocol):
    power_plugged: bool | None  # None if unknown


class Battery:
    """The machine's power source. The system is queried at most once every five seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._asked_at: float | None = None
        self._in_use = False

    def in_use(self) -> bool:
        """Return whether the machine runs on battery power. Return False if this is unknown."""
        now = self._clock()
        if self._asked_at is None or now - self._asked_at >= ASK_EVERY_S:
            self._asked_at = now
            self._in_use = _is_unplugged()
        return self._in_use


def _is_unplugged() -> bool:
    ask = cast("Callable[[], _Charge | None]", psutil.sensors_battery)
    try:
        charge = ask()
    except (OSError, RuntimeError, ValueError):
        log.warning("the system did not report the battery's state", exc_info=True)
        return False
    return charge is not None and charge.power_plugged is False
