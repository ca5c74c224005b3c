"""A copy of the database that is made before its format is changed.

    conversations.db
    conversations.before-update-1.db

The copy stays until a later start has opened the database and found it whole.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from app.paths import free_name
from app.store.database import Database
from app.store.errors import DatabaseFullError, DatabaseNoRoomError
from app.words import problems as words

log = logging.getLogger(__name__)

_WORD = "before-update"
_SPARE = 20_000_000  # bytes that the copy and the change leave free


def copies_of(database: Path) -> list[Path]:
    """Return the copies that were made before an update, the newest one first."""
    found = database.parent.glob(f"{database.stem}.{_WORD}-*{database.suffix}")
    return sorted(found, key=lambda file: file.stat().st_mtime_ns, reverse=True)


def copy_before_update(database: Database, path: Path) -> None:
    """Copy an open database of an earlier format into a new file.

    Raises:
        DatabaseNoRoomError: the disk has no room for the copy and the change.
        StoreError: the copy cannot be made.
    """
    needed = 2 * database.size + _SPARE
    no_room = DatabaseNoRoomError(words.no_room_to_update(path, needed))
    if shutil.disk_usage(path.parent).free < needed:
        raise no_room
    part = path.with_suffix(".update-part")
    try:
        part.unlink(missing_ok=True)
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        database.copy_to(part)
        copy = free_name(path, _WORD)
        part.replace(copy)
    except DatabaseFullError as error:
        raise no_room from error
    finally:
        part.unlink(missing_ok=True)
    log.info("made the copy %s before an update of the format", copy.name)


def remove_copies(copies: Iterable[Path]) -> None:
    """Remove copies that were made by earlier starts."""
    for copy in copies:
        with contextlib.suppress(OSError):
            copy.unlink(missing_ok=True)
            log.info("removed the copy %s", copy.name)
