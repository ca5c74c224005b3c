"""The crash log: a file for the stack traces that Python's faulthandler writes in a crash.

The file is opened before Qt and other native libraries are imported, so that it records crashes in
these libraries too. It stays empty until a crash, and a clean exit removes it. The next start
renames a crash log that has content, and shows it to the user once. This module imports no Qt.
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
from engine.problem import Problem

FILE_NAME = "crash.log"


class CrashLog:
    """The crash log of this run: a context manager that keeps the file open while the app runs.

    The caller holds the InstanceLock, so no other process writes to this file.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._descriptor = -1
        # new path of the last run's crash log; None if the last run ended without a crash
        self.last: Path | None = None

    def __enter__(self) -> CrashLog:
        """Rename the last run's crash log, open a new one and enable faulthandler.

        Raises:
            DiskError: the crash log cannot be renamed or created.
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
        # If an unexpected exception ends the app, write the traceback to the crash log, because
        # there may be no window yet to show it (for example if a shared library cannot be loaded).
        # The next start shows the traceback.
        if is_unexpected:
            account = "".join(format_exception(error))
            os.write(self._descriptor, account.encode("utf-8", "backslashreplace"))
        os.close(self._descriptor)
        if not is_unexpected:
            self._path.unlink(missing_ok=True)


def crash_problem(account: Path) -> Problem:
    """Return the problem to show for a crash log, with the log's text as its details."""
    try:
        details = account.read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        details = words.cannot_read(account, error.strerror)
    return Problem(
        title=words.CRASHED, cause=words.CRASHED_KEPT, advice=words.CRASHED_ADVICE, details=details
    )


def _put_aside(path: Path) -> Path | None:
    """Rename the crash log and return its new path, or None if the log is missing or empty.

    Under its old name, the next start would report the same crash again.
    """
    if not path.exists() or path.stat().st_size == 0:
        return None
    return path.replace(free_name(path, "kept"))
