"""The folder that holds the database, its backups and pictures. It can be moved to another disk.

    home      the data folder of the app: settings, models, lock, location.json
    folder    conversations.db, Backups and pictures; the same folder until it is moved

A move copies the files, reads the copies again and compares them, then writes location.json. Until
that moment the next start uses the old folder, and afterwards the new one, so an interruption loses
nothing. The next start removes an incomplete copy. The old files stay until `delete_old`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

from app.paths import PRIVATE_FOLDER
from app.store.backups import FOLDER, backups_of
from app.store.condition import ConditionNote
from app.store.conversations import OpenedStore, open_store
from app.store.database import BUSY_TIMEOUT_S
from app.store.errors import DatabaseFileError, DatabaseFullError
from app.store.lock import LOCK, InstanceLock
from app.store.pictures import FOLDER as PICTURES, PictureFiles
from app.store.updates import copies_of
from app.words import problems as words
from engine.whole_file import write_whole

log = logging.getLogger(__name__)

DATABASE = "conversations.db"
_LOCATION = "location.json"
_PART = ".moving"  # ending of a copy that is not complete
_CHUNK = 1 << 20
_SPARE_BYTES = 200_000_000  # disk space that a move must leave free

# Argument: share of the bytes that has been copied. It may raise an error, which ends the move.
Progress = Callable[[float], None]


class DataPlace:
    """The place of the database and the pictures of one data folder.

    Only the store thread opens and moves it. Any thread may use `pictures`.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._lock: InstanceLock | None = None  # of `folder`, if that is not `home`
        location = _read(home / _LOCATION)
        self.folder = Path(str(location.get("folder") or home))
        # Before pictures were moved with the database, they stayed in `home`.
        self.pictures = PictureFiles(Path(str(location.get("pictures") or home / PICTURES)))
        old = location.get("old")
        # Folders with copies from before a move, which the user has not deleted yet.
        moving = location.get("moving")
        # Folder with an incomplete copy of a move that was interrupted.
        self._incomplete = Path(moving) if isinstance(moving, str) else None
        names = cast("list[object]", old) if isinstance(old, list) else []
        self.old = tuple(Path(str(name)) for name in names)

    @property
    def database(self) -> Path:
        return self.folder / DATABASE

    def open(self, *, now: float, busy_timeout_s: float = BUSY_TIMEOUT_S) -> OpenedStore:
        """Open the store. The caller holds the lock of `home`.

        Raises:
            StoreError: the folder is missing, or the database cannot be used.
        """
        if self.folder != self._home:
            if not self.database.exists() and ConditionNote(self.database).rescued_file is None:
                raise DatabaseFileError(words.place_missing(self.folder))
            self._lock = self._lock or _locked(self.folder)
        if self._incomplete is not None:
            self._remove_copy(self._incomplete)
            self._incomplete = None
            self._write()
        return open_store(self.database, now=now, busy_timeout_s=busy_timeout_s)

    def release(self) -> None:
        """Release the lock of the folder, after the store is closed."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def move(self, chosen: Path, *, progress: Progress) -> None:
        """Copy the database, its backups and pictures, verify the copies, and use them from now on.

        The store must be closed. Pictures may be added meanwhile. A chosen folder that is not empty
        gets a folder for the files.

        Raises:
            StoreError: the files are missing or cannot be copied. The old folder stays in use.
        """
        try:
            if not self.database.exists():
                raise DatabaseFileError(words.place_missing(self.folder))
            folder = chosen if chosen == self._home else _target(chosen)
            for one in (chosen, folder):
                if (one / DATABASE).exists():
                    raise DatabaseFileError(words.place_taken(one))
            folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            lock = None if folder == self._home else _locked(folder)
            try:
                self._write(moving=folder)
                self._copy_all(folder, progress)
                with self.pictures.held():
                    self._copy_new_pictures(folder)
                    self._use(folder)
            except BaseException:
                self._remove_copy(folder)
                with contextlib.suppress(OSError):  # else the next start removes what is left
                    self._write()
                if lock is not None:
                    lock.release()
                raise
        except OSError as error:
            raise DatabaseFileError(words.cannot_move(chosen, error.strerror)) from error
        self.release()
        self._lock = lock

    def delete_old(self) -> None:
        """Delete the files that a move has left in the old folders.

        Raises:
            DatabaseFileError: a file cannot be deleted.
        """
        try:
            for folder in self.old:
                for file in (*_files(folder), *self._unused_pictures(folder)):
                    file.unlink(missing_ok=True)
                ConditionNote(folder / DATABASE).remove()
                self._remove_rest(folder)
        except OSError as error:
            raise DatabaseFileError(words.cannot_delete(error.filename, error.strerror)) from error
        self.old = ()
        self._write()

    def _remove_rest(self, folder: Path) -> None:
        """Remove the lock file and the folders that became empty. `home` keeps its own."""
        if folder != self._home:
            (folder / LOCK).unlink(missing_ok=True)
        for emptied in (folder / FOLDER, folder / PICTURES, folder):
            with contextlib.suppress(OSError):  # not empty, or not there
                emptied.rmdir()

    def _remove_copy(self, folder: Path) -> None:
        """Remove an incomplete copy. The folder had no database before the move."""
        parts = (
            part
            for place in ("", f"{FOLDER}/", f"{PICTURES}/")
            for part in folder.glob(f"{place}*{_PART}")
        )
        with contextlib.suppress(OSError):
            for file in (*_files(folder), *self._unused_pictures(folder), *parts):
                file.unlink(missing_ok=True)
            self._remove_rest(folder)

    def _unused_pictures(self, folder: Path) -> list[Path]:
        """Return the files of pictures in a folder, unless they are those in use."""
        copies = PictureFiles(folder / PICTURES)
        return [] if copies.folder == self.pictures.folder else copies.complete_files()

    def _copy_all(self, folder: Path, progress: Progress) -> None:
        files = {file: folder / file.relative_to(self.folder) for file in _files(self.folder)}
        pictures = self._picture_copies(folder)
        total = sum(file.stat().st_size for file in (*pictures, *files))
        if shutil.disk_usage(folder).free < total + _SPARE_BYTES:
            raise DatabaseFullError(words.no_space(folder))
        copied = 0

        def advance(size: int) -> None:
            nonlocal copied
            copied += size
            progress(copied / max(1, 2 * total))  # each byte is written, then read again

        (folder / FOLDER).mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        for file, target in (*pictures.items(), *files.items()):
            _copy(file, target, advance)

    def _copy_new_pictures(self, folder: Path) -> None:
        """Copy the pictures that were added since the copy began. No more can be added now."""
        for file, target in self._picture_copies(folder).items():
            if not target.exists():
                _copy(file, target, lambda _size: None)

    def _picture_copies(self, folder: Path) -> dict[Path, Path]:
        """Return the files of pictures, and where their copies are to be."""
        copies = folder / PICTURES
        if copies == self.pictures.folder:
            return {}
        copies.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        return {file: copies / file.name for file in self.pictures.complete_files()}

    def _use(self, folder: Path) -> None:
        before = self.folder, self.old, self.pictures.folder
        self.old = (*(one for one in self.old if one != folder), self.folder)
        self.folder, self.pictures.folder = folder, folder / PICTURES
        try:
            self._write()
        except OSError:
            self.folder, self.old, self.pictures.folder = before
            raise
        log.info("the database was moved to another folder")

    def _write(self, *, moving: Path | None = None) -> None:
        location = {
            "folder": str(self.folder),
            "pictures": str(self.pictures.folder),
            "old": [str(one) for one in self.old],
            "moving": moving and str(moving),
        }
        write_whole(self._home / _LOCATION, json.dumps(location).encode())


def _read(path: Path) -> dict[str, object]:
    try:
        location = cast("object", json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        if path.exists():
            log.warning("%s cannot be read: %s", path.name, error)
        return {}
    return cast("dict[str, object]", location) if isinstance(location, dict) else {}


def _locked(folder: Path) -> InstanceLock:
    lock = InstanceLock(folder)
    lock.acquire()
    return lock


def _target(chosen: Path) -> Path:
    """Return the chosen folder if it is empty, else a folder inside."""
    is_free = not chosen.exists() or not any(chosen.iterdir())
    return chosen if is_free else chosen / words.DATA_FOLDER_NAME


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files of a database that exist, the database last."""
    database = folder / DATABASE
    yield from backups_of(database)
    yield from copies_of(database)
    for file in (Path(f"{database}-wal"), database):
        if file.exists():
            yield file


def _copy(source: Path, target: Path, advance: Callable[[int], None]) -> None:
    """Copy a file and compare the copy with it.

    Raises:
        OSError: the copy cannot be written, or differs.
    """
    part = Path(f"{target}{_PART}")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with source.open("rb") as reader, os.fdopen(descriptor, "wb") as writer:
            digest = hashlib.sha256()
            while chunk := reader.read(_CHUNK):
                digest.update(chunk)
                writer.write(chunk)
                advance(len(chunk))
            writer.flush()
            os.fsync(descriptor)
        with part.open("rb") as reader:
            again = hashlib.sha256()
            while chunk := reader.read(_CHUNK):
                again.update(chunk)
                advance(len(chunk))
        if digest.digest() != again.digest():
            raise OSError(0, words.COPY_DIFFERS)
        shutil.copystat(source, part)
        part.chmod(0o600)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
