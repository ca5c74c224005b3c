"""One Rejoinder per data folder: a lock that the system gives back when the process ends, however it ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType

from app.store.errors import AlreadyRunningError, DatabaseFileError
from app.words import problems as words


class InstanceLock:
    """The right to use a data folder. Any thread."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / "lock"
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock without waiting.

        Raises:
            AlreadyRunningError: another process, or another lock of this one, holds it.
            DatabaseFileError: the lock file cannot be made.
        """
        assert self._descriptor is None
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            cause = words.cannot_open(self._path, error.strerror)
            raise DatabaseFileError(cause) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if isinstance(error, BlockingIOError):
                raise AlreadyRunningError(words.another_uses(self._path.parent)) from error
            cause = words.cannot_lock(self._path, error.strerror)
            raise DatabaseFileError(cause) from error
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the lock back. The file stays: removing it would let two processes lock two files."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> InstanceLock:
        self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()
