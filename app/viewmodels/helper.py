"""A child process for work that may never end: lexing of code and typesetting of formulas. No Qt.

A Pygments regex can search for hours, and it holds Python's global lock meanwhile. In a thread it
would stop the window. A Helper is a process: if a call exceeds its limits, the process is ended,
the call raises HelperEndedError, and the next call starts a new process. The process ends itself
when the app ends, because its input then ends. helper_program.py is its program.
"""

from __future__ import annotations

import json
import logging
import os
import select
import subprocess
import sys
import threading

import psutil

log = logging.getLogger(__name__)

# Seconds of CPU time for one call. Ordinary code and formulas take less than a tenth of it, and the
# imports of the first call in a new process a third.
LIMIT_S = 1.0
# Bytes of memory that the process may use. With Pygments or ziamath loaded it uses 60 MB.
MAX_BYTES = 500_000_000
_CHECK_S = 0.05  # seconds between two checks of the memory
_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[1:]; from app.viewmodels.helper_program import main; main()"
)


class HelperError(Exception):
    """A call of the helper process raised an exception."""


class HelperEndedError(HelperError):
    """The process exceeded a limit and was ended, or Helper.close() was called."""


class Helper:
    """A helper process. The first call starts it, and so does the first call after its end.

    All methods may be called from any thread. The process carries out one call at a time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # held during a call
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def call(self, name: str, *args: object, limit_s: float = LIMIT_S) -> object:
        """Call a function of helper_program.py. Return its result, a JSON value.

        Args:
            name: the name of the function.
            args: the arguments, JSON values.
            limit_s: seconds of CPU time after which the process is ended.

        Raises:
            HelperError: the function raised an exception.
            HelperEndedError: the process exceeded a limit and was ended.
        """
        with self._lock:
            process = self._started()
            request = json.dumps({"name": name, "args": args, "limit_s": limit_s})
            try:
                answer = _exchange(process, request.encode() + b"\n")
            except OSError:
                answer = b""
            if not answer:
                self._end(process)
                raise HelperEndedError(name)
        found = json.loads(answer)
        if "error" in found:
            raise HelperError(found["error"])
        return found["value"]

    def close(self) -> None:
        """End the process. A call in another thread raises HelperEndedError."""
        self._closed = True
        process = self._process
        if process is not None:
            process.kill()
        with self._lock:
            if self._process is not None:
                self._end(self._process)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._closed:
            raise HelperEndedError("closed")
        if self._process is None:
            self._process = subprocess.Popen(  # noqa: S603 — our own interpreter and program
                [sys.executable, "-c", _PROGRAM, *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                process_group=0,  # Ctrl-C in a terminal ends the app, which then ends this process
            )
        return self._process

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        code = process.wait()
        if not self._closed:
            log.info("the helper process ended with %d", code)
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()
        self._process = None


def _exchange(process: subprocess.Popen[bytes], request: bytes) -> bytes:
    """Send a line to the process. Return the line that it answers, or b"" if it ends."""
    assert process.stdin is not None
    assert process.stdout is not None
    view = memoryview(request)
    while view:
        view = view[os.write(process.stdin.fileno(), view) :]
    pipe = process.stdout.fileno()
    parts: list[bytes] = []
    while not parts or not parts[-1].endswith(b"\n"):
        while not select.select([pipe], [], [], _CHECK_S)[0]:
            if _memory_of(process.pid) > MAX_BYTES:
                return b""
        parts.append(os.read(pipe, 1 << 20))
        if not parts[-1]:
            return b""
    return b"".join(parts)


def _memory_of(pid: int) -> int:
    try:
        return psutil.Process(pid).memory_info().rss
    except psutil.Error:
        return 0  # the process has just ended
