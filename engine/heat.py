"""Detection of a hot Mac. Cached state is not written to disk while the machine slows itself down.

macOS publishes its thermal pressure under a name of notify(3), which needs neither permission nor
Objective-C. The levels are those of libkern/OSThermalNotification.h. Elsewhere the heat is unknown.
"""

from __future__ import annotations

import ctypes
import logging
import sys
from collections.abc import Callable

log = logging.getLogger(__name__)

_NAME = b"com.apple.system.thermalpressurelevel"
_HEAVY = 2  # kOSThermalPressureLevelHeavy: the machine has reduced its clock


class Heat:
    """The thermal pressure of the machine."""

    def __init__(self, read: Callable[[], int] | None = None) -> None:
        """Create an observer.

        read: function that returns the level. The default asks macOS.
        """
        self._read = read or _reader()

    def is_high(self) -> bool:
        """Return whether the machine slows itself down. Return False if this is unknown."""
        return self._read() >= _HEAVY


def _reader() -> Callable[[], int]:
    """Return a function that asks macOS for the level. Elsewhere the function returns 0."""
    if sys.platform != "darwin":
        return lambda: 0
    system = ctypes.CDLL(None)
    token = ctypes.c_int()
    if system.notify_register_check(_NAME, ctypes.byref(token)) != 0:
        log.warning("macOS does not report its thermal pressure")
        return lambda: 0

    def read() -> int:
        level = ctypes.c_uint64()
        failed = system.notify_get_state(token, ctypes.byref(level)) != 0
        return 0 if failed else level.value

    return read
