"""A child process that answers calls, one at a time, and is killed if a call exceeds a limit.

A regular expression of a tokenizer or a lexer can search for hours while it holds Python's lock,
and a chat template is a program. In a thread, neither can be ended. The child process ends itself
when this process ends, because its input then ends. `loop.py` is the child's side.
"""

from __future__ import annotations

import atexit
import logging
import math
import os
import select
import signal
import subprocess
import time

import psutil

from engine.worker.frames import Frame, read_frame
from engine.worker.interpreter import own_program

log = logging.getLogger(__name__)

# Seconds between two checks of the memory. A call that is answered sooner is not checked.
_CHECK_S = 0.05
_LIMIT_SIGNALS = (signal.SIGALRM, signal.SIGPROF)  # end a process whose time for a call is over


class ChildEndedError(Exception):
    """The child process exceeded a limit and was killed, or it ended for another reason.

    The text is a sentence that names the limit.
    """


class MemoryLimitError(ChildEndedError):
    """The child process used too much memory."""


class SilenceLimitError(ChildEndedError):
    """The child process wrote nothing for too long."""


class ChildProcess:
    """A child process. A call starts it if it does not run.

    One thread at a time may use this object, except that any thread may call `kill`.

    Args:
        module: the module whose function main() is the child's program.
    """

    def __init__(self, module: str) -> None:
        self._module = module
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process_id(self) -> int | None:
        """The id of the running process, or None if there is none."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the process if it does not run. Its imports take up to a second, in parallel."""
        if self._process is None:
            self._process = subprocess.Popen(  # noqa: S603 — our own interpreter and program
                own_program(self._module),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                process_group=0,  # Ctrl-C in a terminal signals this process only
            )
            atexit.register(self.close)

    def drop_ended(self) -> bool:
        """Release a process that has ended since its last call. Return True if there was one.

        The system or a user may end it while it rests. The next call then starts a new process.
        Call this before a call that needs nothing of an earlier one.
        """
        if self._process is None or self._process.poll() is None:
            return False
        log.info("the child process %s ended with %d", self._module, self._process.returncode)
        self.close()
        return True

    def kill(self) -> None:
        """Kill the process, from any thread. A call in another thread raises ChildEndedError."""
        process = self._process
        if process is not None:
            process.kill()

    def close(self) -> None:
        """Kill the process and release its pipes."""
        process, self._process = self._process, None
        atexit.unregister(self.close)
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()

    def exchange(self, call: Frame, *, limit_s: float, max_bytes: int) -> Frame:
        """Send a call to the process. Return its answer.

        Args:
            call: the call.
            limit_s: seconds after which the process is ended. The child's program decides whether
                these are seconds of the clock or of CPU time.
            max_bytes: bytes of memory that the process may use during the call.

        Raises:
            ChildEndedError: the process exceeded a limit, or it ended.
        """
        self.start()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        started = time.monotonic()
        try:
            _write(process.stdin.fileno(), Frame({**call.header, "limit_s": limit_s}, call.body))
            answer = read_frame(lambda num_bytes: _read(process, num_bytes, max_bytes))
        except BrokenPipeError:
            answer = None
        except ChildEndedError:
            self.close()
            raise
        if answer is not None:
            return answer
        code = process.wait()
        self.close()
        log.info("the child process %s ended with %d", self._module, code)
        if -code in _LIMIT_SIGNALS:
            seconds = time.monotonic() - started
            raise ChildEndedError(f"It takes longer than {seconds:.0f} seconds.")
        raise ChildEndedError(f"It ended its process ({code}).")


def _read(process: subprocess.Popen[bytes], num_bytes: int, max_bytes: int) -> bytes:
    """Read num_bytes, or fewer if the process ends. Watch the memory of the process."""
    parts: list[bytes] = []
    while num_bytes:
        part = read_part(process, num_bytes, max_bytes=max_bytes)
        if not part:
            break
        parts.append(part)
        num_bytes -= len(part)
    return b"".join(parts)


def read_part(
    process: subprocess.Popen[bytes],
    num_bytes: int,
    *,
    max_bytes: int,
    max_silence_s: float = math.inf,
) -> bytes:
    """Read the bytes that a process writes next, at most num_bytes; none if it has ended.

    Raises:
        MemoryLimitError: the process uses more than max_bytes of memory.
        SilenceLimitError: the process writes nothing for max_silence_s.
    """
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    started = time.monotonic()
    while not select.select([pipe], [], [], _CHECK_S)[0]:
        if _memory_of(process.pid) > max_bytes:
            raise MemoryLimitError(f"It needs more than {max_bytes / 1e9:.3g} GB of memory.")
        if time.monotonic() - started > max_silence_s:
            raise SilenceLimitError(f"It takes longer than {max_silence_s:.0f} seconds.")
    return os.read(pipe, min(num_bytes, 1 << 20))


def _write(pipe: int, frame: Frame) -> None:
    view = memoryview(frame.packed())
    while view:
        view = view[os.write(pipe, view) :]


def _memory_of(pid: int) -> int:
    try:
        return psutil.Process(pid).memory_info().rss
    except psutil.Error:
        return 0  # the process has just ended
