"""The worker process: it runs chat templates and tokenizers, which come from a model's folder.

If a call exceeds its limits, the process is killed, the call raises WorkerEndedError, and the next
call starts a new process and makes the objects again that it needs.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from functools import cache
from itertools import count
from pathlib import Path
from weakref import finalize

from engine.worker.child import ChildEndedError, ChildProcess
from engine.worker.frames import Frame

# Bytes of memory that the worker process may use. A tokenizer with 250,000 tokens takes 300 MB.
MAX_BYTES = 1 << 30
# Seconds that making an object may take. A tokenizer with 250,000 tokens takes one second.
SETUP_S = 10.0


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
        self._child = ChildProcess("engine.models.worker")
        self._numbers = count()
        # Objects that the running process has, and objects that it may drop.
        self._held: set[int] = set()
        self._dropped: deque[int] = deque()
        # The tokenizer.json that was read last without an error: path, bytes and time of change.
        self._rehearsed: tuple[Path, int, int] | None = None

    @property
    def process_id(self) -> int | None:
        """The id of the running process, or None if there is none."""
        return self._child.process_id

    @property
    def held(self) -> frozenset[int]:
        """The numbers of the objects in the process."""
        return frozenset(self._held)

    def start(self) -> None:
        """Start the process if it does not run. Its imports take a second, in parallel."""
        with self._lock:
            self._child.start()

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._child.close()
            self._held.clear()
            self._dropped.clear()

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
            self._drop_ended()
            if number not in self._held:
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
            self._drop_ended()
            return self._run(frame, limit_s)

    def rehearse_tokenizer(self, path: Path) -> None:
        """Read a tokenizer.json in the process, before this process reads it.

        The file is not read again until it changes, or another one is read.

        Raises:
            OSError: there is no such file.
            WorkerError: reading the file exceeds a limit, or tokenizers cannot read it.
        """
        with self._lock:
            status = path.stat()
            file = path, status.st_size, status.st_mtime_ns
            if file != self._rehearsed:
                self._rehearsed = None
                self.run(Frame({"rehearse": str(path)}), SETUP_S)
                self._rehearsed = file

    def new_number(self, owner: object) -> int:
        """Return a number for an object of the process, which is dropped together with owner."""
        number = next(self._numbers)
        finalize(owner, self._dropped.append, number).atexit = False
        return number

    def _drop_ended(self) -> None:
        """Forget the objects of a process that has ended since the last call."""
        if self._child.drop_ended():
            self._held.clear()
            self._dropped.clear()

    def _run(self, frame: Frame, limit_s: float) -> Frame:
        try:
            answer = self._child.exchange(frame, limit_s=limit_s, max_bytes=MAX_BYTES)
        except ChildEndedError as error:
            self.close()
            raise WorkerEndedError(str(error)) from error
        if "error" in answer.header:
            raise WorkerError(str(answer.header["error"]))
        return answer


@cache
def shared_worker() -> Worker:
    """Return the worker process that all models of this process share."""
    return Worker()
