"""The app's side of the worker process: start it, call it, and end it at a limit.

A chat template is a program, and a tokenizer's patterns can search for hours. Both come from a
model's folder. In a thread, neither can be ended. The worker process runs them: if a call exceeds
its limits, the process is killed, the call raises WorkerError, and the next call starts a new
process. The process ends itself when the app ends, because its input then ends.
"""

from __future__ import annotations

import atexit
import logging
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import cache
from itertools import count
from weakref import finalize

import psutil

from engine.worker.frames import Frame, read_frame

log = logging.getLogger(__name__)

# Bytes of memory that the worker process may use. A tokenizer with 250,000 tokens takes 300 MB.
MAX_BYTES = 1 << 30
# Seconds that making an object may take. A tokenizer with 250,000 tokens takes one second.
SETUP_S = 10.0
# Seconds between two checks of the memory. A call that is answered sooner is not checked.
_CHECK_S = 0.05
_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from engine.models.worker import main; main()"


class WorkerError(Exception):
    """A call of the worker process had no result. The text tells why, as a sentence."""


class WorkerEndedError(WorkerError):
    """The worker process exceeded a limit and was ended, or it ended for another reason."""


class Worker:
    """A worker process. It is started by the first call, and again after it was killed.

    All methods may be called from any thread. The process carries out one call at a time.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = count()
        # Objects that the running process has, and objects that it may drop.
        self._held: set[int] = set()
        self._dropped: deque[int] = deque()

    @property
    def process_id(self) -> int | None:
        """The id of the running process, or None if there is none."""
        return None if self._process is None else self._process.pid

    @property
    def held(self) -> frozenset[int]:
        """The numbers of the objects in the process."""
        return frozenset(self._held)

    def start(self) -> None:
        """Start the process if it does not run. Its imports take a second, in parallel."""
        with self._lock:
            if self._process is not None:
                return
            self._process = subprocess.Popen(  # noqa: S603 — our own interpreter and program
                [sys.executable, "-c", _PROGRAM, *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                process_group=0,  # Ctrl-C in a terminal ends an answer, not this process
            )
            self._held.clear()
            self._dropped.clear()
            atexit.register(self.close)

    def close(self) -> None:
        """End the process."""
        with self._lock:
            process, self._process = self._process, None
            atexit.unregister(self.close)
            if process is None:
                return
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                pipe.close()

    def call(self, number: int, setup: Callable[[], Frame], frame: Frame, limit_s: float) -> Frame:
        """Call an object of the process. Return its answer.

        Args:
            number: the number of the object, from `new_number`.
            setup: returns the frame that makes the object. It is called if the process does not
                have the object.
            frame: the call.
            limit_s: seconds after which the process is ended.

        Raises:
            WorkerError: the call raised an error, the process exceeded a limit, or it ended.
        """
        with self._lock:
            if self._process is None or number not in self._held:
                made = setup()
                header = {**made.header, "number": number}
                self._run(Frame(header, made.body), SETUP_S)
                self._held.add(number)
            dropped = [self._dropped.popleft() for _ in range(len(self._dropped))]
            self._held.difference_update(dropped)
            header = {**frame.header, "number": number, "drop": dropped}
            return self._run(Frame(header, frame.body), limit_s)

    def run(self, frame: Frame, limit_s: float) -> Frame:
        """Send a frame to the process. Return its answer.

        Args:
            frame: the call.
            limit_s: seconds after which the process is ended.

        Raises:
            WorkerError: the call raised an error, the process exceeded a limit, or it ended.
        """
        with self._lock:
            return self._run(frame, limit_s)

    def new_number(self, owner: object) -> int:
        """Return a number for an object of the process, which is dropped together with owner."""
        number = next(self._numbers)
        finalize(owner, self._dropped.append, number).atexit = False
        return number

    def _run(self, frame: Frame, limit_s: float) -> Frame:
        self.start()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        started = time.monotonic()
        try:
            _write(process.stdin.fileno(), Frame({**frame.header, "limit_s": limit_s}, frame.body))
            answer = read_frame(lambda num_bytes: self._read(process, num_bytes))
        except BrokenPipeError:
            answer = None
        except WorkerEndedError:
            self.close()
            raise
        if answer is None:
            reason = process.wait()
            self.close()
            log.warning("the worker process ended with %d", reason)
            if reason == -signal.SIGALRM:
                raise WorkerEndedError(
                    f"It takes longer than {time.monotonic() - started:.0f} seconds."
                )
            raise WorkerEndedError(f"It ended its process ({reason}).")
        if "error" in answer.header:
            raise WorkerError(str(answer.header["error"]))
        return answer

    def _read(self, process: subprocess.Popen[bytes], num_bytes: int) -> bytes:
        """Read num_bytes, or fewer if the process ends. Watch the memory of the process.

        Raises:
            WorkerEndedError: the process uses too much memory.
        """
        assert process.stdout is not None
        pipe = process.stdout.fileno()
        parts: list[bytes] = []
        while num_bytes:
            while not select.select([pipe], [], [], _CHECK_S)[0]:
                if _memory_of(process.pid) > MAX_BYTES:
                    raise WorkerEndedError(
                        f"It needs more than {MAX_BYTES / 1e9:.0f} GB of memory."
                    )
            part = os.read(pipe, min(num_bytes, 1 << 20))
            if not part:
                break
            parts.append(part)
            num_bytes -= len(part)
        return b"".join(parts)


@cache
def shared_worker() -> Worker:
    """Return the worker process that all models of this process share."""
    return Worker()


def _write(pipe: int, frame: Frame) -> None:
    view = memoryview(frame.packed())
    while view:
        view = view[os.write(pipe, view) :]


def _memory_of(pid: int) -> int:
    try:
        return psutil.Process(pid).memory_info().rss
    except psutil.Error:
        return 0  # the process has just ended
