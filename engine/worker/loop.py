"""The loop of a child process (child.py): it answers calls until its input ends."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable

from engine.errors import is_failure, problem_of
from engine.worker.frames import Frame, read_frame


def answer_calls(answer: Callable[[Frame], Frame], *, counts_cpu_time: bool) -> None:
    """Answer calls from standard input on standard output, until the input ends.

    Each call states its limit in seconds. After it the system ends this process by a signal, even
    if no Python code runs.

    Args:
        answer: carries out a call. If it raises, the answer is a frame with the header "error".
        counts_cpu_time: if True, the limit is CPU time of this process, else time of the clock.
    """
    timer, alarm = signal.ITIMER_REAL, signal.SIGALRM
    if counts_cpu_time:
        timer, alarm = signal.ITIMER_PROF, signal.SIGPROF
    signal.signal(alarm, signal.SIG_DFL)
    while (call := read_frame(sys.stdin.buffer.read)) is not None:
        limit_s = call.header["limit_s"]
        assert isinstance(limit_s, float | int)
        signal.setitimer(timer, limit_s)
        try:
            result = answer(call)
        except BaseException as error:
            if not is_failure(error):
                raise
            result = Frame({"error": problem_of(error).cause})
        signal.setitimer(timer, 0)
        sys.stdout.buffer.write(result.packed())
        sys.stdout.buffer.flush()
