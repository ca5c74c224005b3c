"""A lock that lets only one process use a data folder.

The system releases the lock when the process ends, even if it is killed.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from app.store.errors import AlreadyRunningError, DatabaseFileError
from app.words import problems as words

LOCK = "lock"  # name of the locked file
# Content of the locked file while its process closes the app. At all other times the file is empty.
_ENDING = b"ending"


class InstanceLock:
    """An exclusive lock on a data folder, used as a context manager. Any thread may use it."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / LOCK
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Acquire the lock without waiting.

        Raises:
            AlreadyRunningError: another process, or another InstanceLock of this process, holds it.
            DatabaseFileError: the lock file cannot be created or locked.
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
        os.ftruncate(descriptor, 0)
        self._descriptor = descriptor

    def note_end(self) -> None:
        """Report to later processes that this process is about to release the lock."""
        assert self._descriptor is not None
        # On a full disk, a later process reports that the app is already running.
        with suppress(OSError):
            os.pwrite(self._descriptor, _ENDING, 0)

    def is_ending(self) -> bool:
        """Return True if the process that holds the lock has called note_end()."""
        try:
            return self._path.read_bytes() == _ENDING
        except OSError:
            return False

    def release(self) -> None:
        """Release the lock, but keep its file.

        If the file were removed, one process could still hold its lock on the removed file while
        another one locks a new file of the same name.
        """
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
