"""A limit for the processor time of a call on the main thread. No Qt.

Some patterns of Pygments search for hours in a short text, and a search cannot be stopped from
outside. But Python's regular expressions handle signals while they search. So a timer sends a
signal, and its handler raises an exception out of the search.
"""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType


class TimeLimitError(Exception):
    """The call took longer than its limit."""


_is_limited = False


@contextmanager
def time_limit(seconds: float) -> Generator[None]:
    """Raise TimeLimitError in the body after so many seconds of processor time of the process.

    Use on the main thread only, and not nested.
    """
    global _is_limited  # noqa: PLW0603 — a process has one such timer
    signal.signal(signal.SIGVTALRM, _on_signal)
    _is_limited = True
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        _is_limited = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _on_signal(_: int, __: FrameType | None) -> None:
    # The handler of a signal can run a little later than the signal, after the body.
    if _is_limited:
        raise TimeLimitError
