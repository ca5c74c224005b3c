"""What is left of a run that was ended by a fault of the code: Python's own account of it, in a private file.

No Qt. The file is opened at the start, before anything that may fault is imported, and is there and empty until
a fault is written to it. A clean end removes it.
"""

from __future__ import annotations

import faulthandler
import os
from pathlib import Path
from traceback import format_exception
from types import TracebackType

from app.paths import free_name
from app.words import problems as words
from engine.errors import DiskError, EngineError
from engine.types import Problem

FILE_NAME = "crash.log"


class CrashLog:
    """Holds the file open while the app runs. One a folder: the caller holds the InstanceLock."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._descriptor = -1
        self.last: Path | None = None  # the account of the last run, put aside, if that was killed

    def __enter__(self) -> CrashLog:
        """Put the last account aside and begin.

        Raises:
            DiskError: the file can't be made.
        """
        try:
            self.last = _put_aside(self._path)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            self._descriptor = os.open(self._path, flags, 0o600)
        except OSError as error:
            raise DiskError(words.cannot_write_log(self._path, error.strerror)) from error
        faulthandler.enable(self._descriptor, all_threads=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        faulthandler.disable()
        is_unexpected = isinstance(error, Exception) and not isinstance(error, EngineError)
        if is_unexpected:  # a library that the system does not load, for one: no window said so
            account = "".join(format_exception(error))
            os.write(self._descriptor, account.encode("utf-8", "backslashreplace"))
        os.close(self._descriptor)
        if not is_unexpected:
            self._path.unlink(missing_ok=True)


def crash_problem(account: Path) -> Problem:
    """What to say of a run that was killed."""
    try:
        details = account.read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        details = words.cannot_read(account, error.strerror)
    return Problem(
        title=words.CRASHED, cause=words.CRASHED_KEPT, advice=words.CRASHED_ADVICE, details=details
    )


def _put_aside(path: Path) -> Path | None:
    """Said once: the next start finds it under another name."""
    if not path.exists() or path.stat().st_size == 0:
        return None
    return path.replace(free_name(path, "kept"))
