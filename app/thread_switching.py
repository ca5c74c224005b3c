"""The time after which the interpreter lets another thread run."""

from __future__ import annotations

import sys

# Seconds after which a busy Python thread lets another one run. Painting a frame takes the
# interpreter lock again after every call into Qt, and a step of a request to the server after each
# call of its event loop. With Python's default of 5 ms, each of these calls may wait 5 ms for the
# thread that typesets formulas or decodes tokens. Longest pause of the main thread in an answer
# with formulas: 127 ms with the default, 39 ms with this value.
SWITCH_S = 0.0002


def switch_threads_often() -> None:
    """Apply SWITCH_S to the interpreter, so that busy threads delay the others less."""
    sys.setswitchinterval(SWITCH_S)
