"""Whether the machine runs on its battery."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Protocol, cast

import psutil

log = logging.getLogger(__name__)

# Asking takes a system call or a few files: not before every piece of work.
_ASK_EVERY_S = 5.0


class _Charge(Protocol):
    power_plugged: bool | None  # None: unknown


class Battery:
    """Asks the system at most every few seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._asked_at: float | None = None
        self._in_use = False

    def in_use(self) -> bool:
        """False too where there is no battery, or nothing is known of it."""
        now = self._clock()
        if self._asked_at is None or now - self._asked_at >= _ASK_EVERY_S:
            self._asked_at = now
            self._in_use = _is_unplugged()
        return self._in_use


def _is_unplugged() -> bool:
    ask = cast("Callable[[], _Charge | None]", psutil.sensors_battery)
    try:
        charge = ask()
    except (OSError, RuntimeError, ValueError):
        log.warning("the battery can't be asked", exc_info=True)
        return False
    return charge is not None and charge.power_plugged is False
