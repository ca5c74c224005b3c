"""Fetch the files of one repository into the cache of the Hugging Face Hub. Runs in the child.

huggingface_hub's own download starts a file again after each interruption. This module appends to
the partial file. A file gets its name in the cache when its size and hash match those that the Hub
lists. So other programs find the model too, and a snapshot contains only verified files.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Sequence
from http import HTTPStatus
from pathlib import Path

from app.hub.cache import CacheTarget, is_partial, open_partial
from app.hub.connection import AnswerError, HubClient, TooLongError, file_address
from app.hub.repository import ListedFile

RESERVE_BYTES = 2_000_000_000  # bytes that a download leaves free on the disk
_MAX_TRIES = 3  # number of times a damaged file is fetched
_CHUNK = 1 << 20  # bytes that are hashed at once


class DamagedFileError(Exception):
    """A downloaded file did not match the Hub's size or hash, also after more tries."""


class CutError(Exception):
    """An answer ended before the file was complete."""


class DiskRoomError(Exception):
    """The disk has no room for the files.

    Args: needed_bytes: number of bytes to download plus RESERVE_BYTES. free_bytes: bytes that are
    free.
    """

    def __init__(self, needed_bytes: int, free_bytes: int) -> None:
        super().__init__()
        self.needed_bytes = needed_bytes
        self.free_bytes = free_bytes


def fetch_all(
    client: HubClient,
    target: CacheTarget,
    files: Sequence[ListedFile],
    progress: Callable[[int], None],
) -> None:
    """Fetch the files that are not in the cache yet.

    Args:
        client: the connection to the Hub.
        target: the repository.
        files: the files, from `needed_files`.
        progress: called with the bytes on the disk, of all files together.

    Raises:
        DiskRoomError: the disk has no room.
        DamagedFileError: a file is damaged in each of several tries.
        CutError, StatusError, AnswerError, httpx2.HTTPError: the Hub or the network fails.
        LinkedFolderError, OSError: a file cannot be written.
    """
    if any(not file.digest for file in files):
        raise AnswerError("hash")
    target.make_folders()
    missing = [file for file in files if not target.has(target.pointer(file), file)]
    left = sum(file.size for file in missing)
    done = sum(file.size for file in files) - left
    started = sum(_started(target, file) for file in missing)
    check_room(target.cache, left - started)
    progress(done + started)
    for file in missing:
        _fetch_intact(client, target, file, lambda size, before=done: progress(before + size))
        done += file.size
        progress(done)
    target.name_main()


def _started(target: CacheTarget, file: ListedFile) -> int:
    """Return the bytes of a file that an earlier download has left."""
    path = target.partial(file)
    return min(path.lstat().st_size, file.size) if is_partial(path) else 0


def check_room(folder: Path, num_bytes: int) -> None:
    """Raise DiskRoomError if the disk of a folder has no room for bytes and the reserve."""
    free = shutil.disk_usage(folder).free
    if num_bytes + RESERVE_BYTES > free:
        raise DiskRoomError(num_bytes + RESERVE_BYTES, free)


def _fetch_intact(
    client: HubClient, target: CacheTarget, file: ListedFile, progress: Callable[[int], None]
) -> None:
    """Fetch a file, compare it with its hash and link it into the snapshot."""
    blob, partial = target.blob(file), target.partial(file)
    tries = 0
    # Another program may have left a blob that is not verified.
    while not (target.has(blob, file) and _is_intact(blob, file, progress)):
        if tries == _MAX_TRIES:
            raise DamagedFileError(file.path)
        tries += 1
        try:
            _append(client, target, file, progress)
        except TooLongError:
            partial.unlink()
            continue
        if _is_intact(partial, file, progress):
            partial.replace(blob)
            break
        partial.unlink()
    target.link(file)


def _append(
    client: HubClient, target: CacheTarget, file: ListedFile, progress: Callable[[int], None]
) -> None:
    """Download the missing bytes of a file, and append them to its partial file.

    Raises:
        TooLongError: more bytes arrive than the Hub lists.
        CutError: fewer bytes arrive.
        DiskRoomError: the room on the disk is less than the reserve.
    """
    url = file_address(target.repo_id, target.commit, file.path)
    with os.fdopen(open_partial(target.partial(file)), "r+b", buffering=0) as content:
        done = content.seek(0, os.SEEK_END)
        if done > file.size:
            content.truncate(0)
            done = content.seek(0)
        if done == file.size:
            return
        headers = {"range": f"bytes={done}-"} if done else {}
        with client.open(url, max_bytes=file.size, headers=headers) as response:
            if done and response.status_code != HTTPStatus.PARTIAL_CONTENT:
                content.truncate(0)
                done = content.seek(0)
            for part in response.iter_raw():
                if done + len(part) > file.size:
                    raise TooLongError(file.path)
                check_room(target.cache, file.size - done)
                content.write(part)
                done += len(part)
                progress(done)
        os.fsync(content.fileno())
    if done < file.size:
        raise CutError


def _is_intact(path: Path, file: ListedFile, progress: Callable[[int], None]) -> bool:
    """Compare a file with the hash that the Hub lists: SHA-256, or Git's SHA-1 for small files."""
    if len(file.digest) == hashlib.sha256().digest_size * 2:
        digest = hashlib.sha256()
    else:
        digest = hashlib.sha1(b"blob %d\0" % file.size, usedforsecurity=False)
    with path.open("rb") as content:
        while part := content.read(_CHUNK):
            digest.update(part)
            progress(file.size)
    return digest.hexdigest() == file.digest
