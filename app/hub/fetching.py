"""Fetch the files of one repository into the cache of the Hugging Face Hub. Runs in the child.

huggingface_hub's own download starts a file again after each interruption. This module appends to
the partial file. When the size and hash match those that the Hub reports, the file is put into the
cache in huggingface_hub's layout. So other programs find the model too, and a snapshot contains
only verified files.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import urlsplit

from huggingface_hub import (
    ModelInfo,
    constants,
    get_hf_file_metadata,  # pyright: ignore[reportUnknownVariableType] — bare dict in its types
    hf_hub_download,  # pyright: ignore[reportUnknownVariableType] — bare dict in its types
    hf_hub_url,
    try_to_load_from_cache,
)
from huggingface_hub.file_download import (
    http_get,  # pyright: ignore[reportUnknownVariableType] — bare tqdm in its types
    repo_folder_name,
)
from huggingface_hub.hf_api import RepoSibling
from huggingface_hub.utils import (
    build_hf_headers,  # pyright: ignore[reportUnknownVariableType] — bare dict in its types
)

# The files that a model needs. No file with code and no pickle is ever fetched.
_NEEDED = ("*.safetensors", "*.json", "*.jinja", "*.txt", "*.model", "*.tiktoken")
_NOT_NEEDED = ("*/*", "onnx*", "*.bin.index.json", "pytorch_model*", "consolidated*", "adapter_*")
RESERVE_BYTES = 2_000_000_000  # bytes that a download leaves free on the disk
_MAX_TRIES = 3  # number of times a damaged file is fetched
_CHUNK = 1 << 20  # bytes per write; at most this many are downloaded again after a crash
_PART = re.compile(r"-\d{5}-of-(?=\d{5}\.gguf$)")
_PARTIAL = ".rejoinder.incomplete"


class DamagedFileError(Exception):
    """A downloaded file did not match the Hub's size or hash, also after more tries."""


class DiskRoomError(Exception):
    """The disk has no room for the files.

    Args: needed_bytes: number of bytes to download plus RESERVE_BYTES. free_bytes: bytes that are
    free.
    """

    def __init__(self, needed_bytes: int, free_bytes: int) -> None:
        super().__init__()
        self.needed_bytes = needed_bytes
        self.free_bytes = free_bytes


@dataclass(frozen=True, slots=True)
class Target:
    """The repository and where its files go."""

    repo_id: str
    revision: str  # id of a commit
    cache: Path

    @property
    def folder(self) -> Path:
        """The folder of the repository in the cache."""
        return self.cache / repo_folder_name(repo_id=self.repo_id, repo_type="model")


def needed_files(info: ModelInfo, chosen: str = "") -> list[RepoSibling]:
    """Return the files that a model needs, small ones first.

    Args:
        info: the repository with the metadata of its files.
        chosen: a GGUF file. Then only this file is needed, with its other parts if it has any.
    """
    files = [file for file in info.siblings or () if file.size is not None]
    if chosen:
        return [file for file in files if first_part(file.rfilename) == first_part(chosen)]
    needed = [file for file in files if _is_needed(file.rfilename)]
    return sorted(needed, key=lambda file: file.size or 0)


def first_part(path: str) -> str:
    """Return the path of the first part of a GGUF file in parts, and the path of any other file."""
    return _PART.sub("-00001-of-", path)


def _is_needed(path: str) -> bool:
    return any(fnmatch(path, pattern) for pattern in _NEEDED) and not any(
        fnmatch(path, pattern) for pattern in _NOT_NEEDED
    )


def fetch_all(
    target: Target, files: Sequence[RepoSibling], progress: Callable[[int], None]
) -> None:
    """Fetch the files that are not in the cache yet.

    Args:
        target: the repository.
        files: the files, from `needed_files`.
        progress: called with the bytes on the disk, of all files together.

    Raises:
        DiskRoomError: the disk has no room.
        DamagedFileError: a file is damaged in each of several tries.
        HfHubHTTPError, httpx2.HTTPError, OSError: the Hub or the network fails.
    """
    missing = [file for file in files if not _is_cached(target, file)]
    done = sum(file.size or 0 for file in files if file not in missing)
    blobs = target.folder / "blobs"
    blobs.mkdir(parents=True, exist_ok=True)
    started = sum(path.stat().st_size for path in _partial_files(blobs))
    check_room(target.cache, sum(file.size or 0 for file in missing) - started)
    progress(done + started)
    for file in missing:
        _fetch_intact(target, file, blobs, lambda size, before=done: progress(before + size))
        done += file.size or 0
        progress(done)
    _name_main(target)


def _name_main(target: Target) -> None:
    """Write refs/main, so that other programs find this commit as the branch main."""
    branch = target.folder / "refs" / "main"
    branch.parent.mkdir(exist_ok=True)
    fresh = branch.with_suffix(".new")
    fresh.write_text(target.revision, encoding="utf-8")
    fresh.replace(branch)


def discard(target: Target) -> None:
    """Remove the partial files of a repository."""
    for path in _partial_files(target.folder / "blobs"):
        path.unlink(missing_ok=True)


def _partial_files(blobs: Path) -> Iterator[Path]:
    return blobs.glob(f"*{_PARTIAL}")


def _is_cached(target: Target, file: RepoSibling) -> bool:
    found = try_to_load_from_cache(
        target.repo_id, file.rfilename, cache_dir=target.cache, revision=target.revision
    )
    return isinstance(found, str) and Path(found).stat().st_size == file.size


def check_room(folder: Path, num_bytes: int) -> None:
    """Raise DiskRoomError if the disk of a folder has no room for bytes and the reserve."""
    free = shutil.disk_usage(folder).free
    if num_bytes + RESERVE_BYTES > free:
        raise DiskRoomError(num_bytes + RESERVE_BYTES, free)


def _fetch_intact(
    target: Target, file: RepoSibling, blobs: Path, progress: Callable[[int], None]
) -> None:
    """Fetch a file, compare it with its hash and link it into the snapshot."""
    url = hf_hub_url(target.repo_id, file.rfilename, revision=target.revision)
    for _ in range(_MAX_TRIES):
        metadata = get_hf_file_metadata(url)
        if metadata.etag is None or Path(metadata.etag).name != metadata.etag:
            raise DamagedFileError(file.rfilename)
        blob = blobs / metadata.etag
        if not blob.exists():
            incomplete = blobs / f"{metadata.etag}{_PARTIAL}"
            headers = build_hf_headers()
            if urlsplit(metadata.location).netloc != urlsplit(url).netloc:
                # A CDN needs no token, because its address is signed.
                headers.pop("authorization", None)
            _append(incomplete, metadata.location, headers, file.size or 0, progress)
            if not _is_intact(incomplete, file):
                incomplete.unlink()
                continue
            incomplete.replace(blob)
        # The blob is already in the cache, so this call only links it into the snapshot.
        hf_hub_download(
            target.repo_id, file.rfilename, revision=target.revision, cache_dir=target.cache
        )
        return
    raise DamagedFileError(file.rfilename)


def _append(
    path: Path, url: str, headers: dict[str, str], size: int, progress: Callable[[int], None]
) -> None:
    """Download the missing bytes of a file, and append them to its partial file."""
    constants.DOWNLOAD_CHUNK_SIZE = _CHUNK
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "r+b", buffering=0) as content:
        start = content.seek(0, os.SEEK_END)
        if start > size:
            start = content.seek(0)
            content.truncate()
        http_get(
            url,
            content,
            resume_size=start,
            headers=headers,
            expected_size=size,
            tqdm_class=cast("Any", partial(_Progress, progress)),
        )
        os.fsync(content.fileno())


def _is_intact(path: Path, file: RepoSibling) -> bool:
    """Compare a file with the hash that the Hub states: SHA-256, or Git's SHA-1 for small files."""
    if path.stat().st_size != file.size:
        return False
    if file.lfs is not None:
        digest, wanted = hashlib.sha256(), file.lfs.sha256
    else:
        digest, wanted = hashlib.sha1(usedforsecurity=False), file.blob_id
        digest.update(f"blob {file.size}\0".encode())
    with path.open("rb") as content:
        while part := content.read(_CHUNK):
            digest.update(part)
    return digest.hexdigest() == wanted


class _Progress:
    """The methods of a progress bar that http_get calls."""

    def __init__(
        self, report: Callable[[int], None], *, initial: int = 0, **_options: object
    ) -> None:
        self._report = report
        self._done = initial

    def update(self, num_bytes: int) -> None:
        self._done += num_bytes
        self._report(self._done)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
