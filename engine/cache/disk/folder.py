"""The folder of the records of all models, and the index of one model. Pure Python, without mlx.

    root/              0700, marked as a cache and as not to be backed up
        lock           held by the process that uses the folder
        written        the bytes written today, for all models (daily.py)
        NAMESPACE/     the records of one model
            index      a copy of all headers (index.py)
            *.safetensors

Every method may raise OSError. A record that cannot be read as what its name promises is removed.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from engine.cache.disk.index import Index, IndexedRecord, entry_of, packed, unpacked
from engine.cache.disk.record import PART_SUFFIX, SUFFIX, RecordError, read_header

log = logging.getLogger(__name__)

_INDEX = "index"
_LOCK = "lock"  # the file contains the id of the process that holds the lock
_WRITTEN = "written"
_PID_LEN = 20
# Largest saved index that is read. 10,000 records of 1,000 tokens take 45 MB.
_MAX_INDEX_BYTES = 1 << 29
# The convention by which backup programs recognise a folder of caches (bford.info/cachedir).
_TAG = "CACHEDIR.TAG"
_TAG_TEXT = "Signature: 8a477f597d28d172789f06886806bc55\nRejoinder can compute all of it again.\n"


class FolderInUseError(Exception):
    """The folder is locked. `is_own`: by this process."""

    def __init__(self, *, is_own: bool) -> None:
        super().__init__()
        self.is_own = is_own


class FolderLock:
    """The right to use the folder of all models. One process at a time has it."""

    def __init__(self, root: Path) -> None:
        """Create the folder if needed, and lock it.

        Raises:
            FolderInUseError: another process, or an engine thread that was replaced, uses the
            folder.
            OSError: the folder cannot be created or locked.
        """
        is_new = not root.exists()
        _make_private(root)
        self._file = os.open(root / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(self._file, _PID_LEN)
            os.close(self._file)
            raise FolderInUseError(is_own=holder == _own_pid()) from error
        os.ftruncate(self._file, 0)
        os.write(self._file, _own_pid())
        if is_new:
            _mark_as_cache(root)

    def release(self) -> None:
        os.close(self._file)


class RecordFolder:
    """The records of one namespace. The caller holds the FolderLock of the root."""

    def __init__(self, root: Path, namespace: str, clock: Callable[[], float] = time.time) -> None:
        """Open the folder, create it if needed, and load the index.

        Args:
            root: folder of the records of all models.
            namespace: model, quantisation, K/V bits, MLX version and device, as a hash.
            clock: function that returns the Unix time.

        Raises:
            OSError: the folder cannot be read or written.
        """
        self.namespace = namespace
        self.path = root / namespace
        self._root = root
        self._clock = clock
        self.index = Index()
        self.extra: dict[str, object] = {}  # further values in the saved index
        _make_private(self.path)
        self._load()

    @property
    def daily_file(self) -> Path:
        return daily_file_of(self._root)

    def file(self, entry: IndexedRecord) -> Path:
        return record_file(self.path, entry)

    def delete(self, entries: Iterable[IndexedRecord]) -> None:
        """Delete the files of records that are no longer in the index."""
        for entry in entries:
            self.file(entry).unlink(missing_ok=True)

    def save_index(self, data: bytes) -> None:
        """Save an index, as returned by `packed`, atomically and readable by this user only."""
        part = self.path / (_INDEX + PART_SUFFIX)
        opened = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(opened, "wb") as file:
            file.write(data)
        part.replace(self.path / _INDEX)

    def other_bytes(self) -> int:
        """Return the size of the records of all other namespaces."""
        return sum(_folder_bytes(folder) for folder in self._others())

    def delete_oldest_other(self) -> bool:
        """Delete the namespace that was used longest ago. Return False if there is no other."""
        others = sorted(self._others(), key=lambda folder: folder.stat().st_mtime)
        if others:
            shutil.rmtree(others[0], ignore_errors=True)
        return bool(others)

    def _others(self) -> list[Path]:
        return [p for p in self._root.iterdir() if p.is_dir() and p != self.path]

    def _load(self) -> None:
        """Load the index. Read the headers of records that it lacks; drop what is not there."""
        saved, self.extra = saved_index(self.path)
        known = {entry.address: entry for entry in saved}
        entries: list[IndexedRecord] = []
        now = self._clock()
        with os.scandir(self.path) as files:
            for file in files:
                address = file.name.removesuffix(SUFFIX)
                if file.name.endswith(PART_SUFFIX):
                    Path(file.path).unlink()
                if address == file.name:
                    continue
                entry = known.get(address) or self._read_entry(Path(file.path), address)
                if entry is not None:
                    entry.last_used = min(entry.last_used, now)  # the clock may have been changed
                    entries.append(entry)
        self.delete(self.index.add_all(entries))

    def _read_entry(self, path: Path, address: str) -> IndexedRecord | None:
        try:
            header = read_header(path, self.namespace)
            return entry_of(header, address, last_used=path.stat().st_mtime)
        except (RecordError, OSError) as error:
            log.info("a record of cached state is removed: %s", error)
            _remove(path)
            return None


def record_file(folder: Path, entry: IndexedRecord) -> Path:
    """Return the file of a record in the folder of its model."""
    return folder / (entry.address + SUFFIX)


def saved_index(folder: Path) -> tuple[list[IndexedRecord], dict[str, object]]:
    """Return the entries and the extra values of the saved index: none if it cannot be read."""
    try:
        with (folder / _INDEX).open("rb") as file:
            return unpacked(file.read(_MAX_INDEX_BYTES))
    except FileNotFoundError:
        pass
    except (RecordError, OSError) as error:
        log.info("the index of cached state is made again: %s", error)
    return [], {}


def forget_in_other_folders(root: Path, used: str | None, conversation_id: str) -> None:
    """Delete a conversation's records of all models except the loaded one.

    Args:
        root: the folder of all models. The caller holds its lock.
        used: the namespace that is open, or None.
        conversation_id: the conversation. Records that others use are kept.
    """
    if not root.is_dir():
        return
    for path in list(root.iterdir()):
        if path.is_dir() and path.name != used:
            folder = RecordFolder(root, path.name)
            removed = folder.index.forget(conversation_id)
            if removed:
                folder.delete(removed)
                entries = list(folder.index.entries.values())
                folder.save_index(packed(entries, folder.extra))


def daily_file_of(root: Path) -> Path:
    """Return the file with the bytes that were written today."""
    return root / _WRITTEN


def stored_bytes(root: Path) -> int:
    """Return the size of the records of all models."""
    return sum(_folder_bytes(path) for path in root.iterdir() if path.is_dir())


def delete_all(root: Path) -> None:
    """Delete the records of all models. The caller holds the root's lock, and no RecordFolder."""
    for path in list(root.iterdir()):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)


def _own_pid() -> bytes:
    return str(os.getpid()).encode()


def _make_private(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _folder_bytes(folder: Path) -> int:
    with os.scandir(folder) as files:
        return sum(file.stat(follow_symlinks=False).st_size for file in files)


def _mark_as_cache(root: Path) -> None:
    (root / _TAG).write_text(_TAG_TEXT, encoding="utf-8")
    if sys.platform == "darwin":
        # Time Machine has its own mark. It is an extended attribute that Python cannot set.
        command = ["/usr/bin/tmutil", "addexclusion", str(root)]
        subprocess.run(command, check=False, capture_output=True, timeout=5)  # noqa: S603
