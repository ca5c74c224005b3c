"""Deletion of cached state on disk, also while the folder is locked by an engine thread that was replaced.

Such a thread keeps the lock until the process ends (unanswered.py). It writes no more, and the new
thread does not write either, so files can be deleted without the lock. Pure Python, without mlx.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import assert_never

from engine.cache.disk.folder import (
    FolderInUseError,
    FolderLock,
    delete_all,
    forget_in_other_folders,
)
from engine.errors import attempt
from engine.events import ClearDisk, Forget, SetDisk
from engine.types import ConversationId

Work = Callable[[Path], None]  # argument: the folder of all models


def with_lock(root: Path, work: Work) -> None:
    """Call `work` under the lock of a folder, or under the lock of an earlier engine thread.

    Raises:
        FolderInUseError: another process uses the folder.
        OSError: the folder cannot be used.
    """
    try:
        lock = FolderLock(root)
    except FolderInUseError as error:
        if not error.is_own:
            raise
        work(root)
        return
    try:
        work(root)
    finally:
        lock.release()


def forget(conversation_id: ConversationId, *, used: str | None = None) -> Work:
    """Return the deletion of a conversation's records, but not of those in the namespace `used`."""
    return partial(forget_in_other_folders, used=used, conversation_id=conversation_id)


class DiskDeletion:
    """Deletes cached state on disk while no engine can be started."""

    def __init__(self, root: Path | None) -> None:
        self._root = root

    def obey(self, command: SetDisk | ClearDisk | Forget) -> None:
        match command:
            case SetDisk(folder=folder):
                self._root = Path(folder)
            case ClearDisk():
                self._delete(delete_all)
            case Forget(conversation_id=conversation_id, on_disk=on_disk):
                if on_disk:
                    self._delete(forget(conversation_id))
            case _:
                assert_never(command)

    def _delete(self, work: Work) -> None:
        if self._root is not None and self._root.is_dir():
            attempt("deleting cached state", partial(with_lock, self._root, work))
