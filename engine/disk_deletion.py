"""Deletion of cached state on disk, also while a replaced engine thread locks the folder.

Such a thread keeps the lock until the process ends (unanswered.py). It writes no more, and the new
thread does not write either, so files can be deleted without the lock. Pure Python, without mlx.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from engine.cache.disk.folder import (
    FolderInUseError,
    FolderLock,
    delete_all,
    forget_in_other_folders,
)
from engine.errors import attempt
from engine.questions import AnyQuestion, ClearDisk, Forget
from engine.types import ConversationId
from engine.wanted import DiskSettings

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


def delete(question: AnyQuestion, disk: DiskSettings | None) -> None:
    """Delete what a question says from disk, while no engine can do it."""
    match question:
        case ClearDisk():
            work: Work = delete_all
        case Forget(conversation_id, on_disk=True):
            work = forget(conversation_id)
        case _:
            return
    if disk is not None and (root := Path(disk.folder)).is_dir():
        attempt("deleting cached state", partial(with_lock, root, work))
