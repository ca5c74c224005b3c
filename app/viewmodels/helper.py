"""A child process for work that may never end: lexing of code and typesetting of formulas. No Qt.

A Pygments regex can search for hours, and it holds Python's lock meanwhile. If a call exceeds its
limits, the process is killed, the call raises HelperEndedError, and the next call starts a new
process. helper_program.py is its program.
"""

from __future__ import annotations

import threading

from engine.worker.child import ChildEndedError, ChildProcess
from engine.worker.frames import Frame

# Seconds of CPU time for one call. Ordinary code and formulas take less than a tenth of it, and the
# imports of the first call in a new process a third.
LIMIT_S = 1.0
# Bytes of memory that the process may use. With Pygments or ziamath loaded it uses 60 MB.
MAX_BYTES = 500_000_000


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
        self._child = ChildProcess("app.viewmodels.helper_program")
        self._closed = False

    def call(self, name: str, *args: object, limit_s: float | None = None) -> object:
        """Call a function of helper_program.py. Return its result, a JSON value.

        Args:
            name: the name of the function.
            args: the arguments, JSON values.
            limit_s: seconds of CPU time after which the process is ended; None: LIMIT_S.

        Raises:
            HelperError: the function raised an exception.
            HelperEndedError: the process exceeded a limit and was ended.
        """
        call = Frame({"name": name, "args": args})
        limit_s = LIMIT_S if limit_s is None else limit_s
        with self._lock:
            if self._closed:
                raise HelperEndedError("closed")
            self._child.drop_ended()
            try:
                answer = self._child.exchange(call, limit_s=limit_s, max_bytes=MAX_BYTES)
            except ChildEndedError as error:
                raise HelperEndedError(str(error)) from error
        if "error" in answer.header:
            raise HelperError(answer.header["error"])
        return answer.header["value"]

    def close(self) -> None:
        """End the process. A call in another thread raises HelperEndedError."""
        self._closed = True
        self._child.kill()
        with self._lock:
            self._child.close()
