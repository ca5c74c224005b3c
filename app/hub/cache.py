"""A repository in the Hugging Face Hub's cache, in huggingface_hub's layout. Runs in the child.

    models--owner--name/blobs/HASH                 contents, and partial files
    models--owner--name/snapshots/COMMIT/PATH      links to the blobs
    models--owner--name/refs/main                  the commit of the branch main

Other programs share the cache, so a link in it may lead anywhere. No link is followed for writing,
and a file outside the cache never counts as a file of a model.
"""

from __future__ import annotations

import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub.file_download import repo_folder_name

from app.hub.connection import AnswerError
from app.hub.repository import ListedFile, is_usable
from app.hub.values import is_commit, is_repo_id

_PARTIAL = ".rejoinder.incomplete"


class LinkedFolderError(Exception):
    """A folder of the cache is a link to another place. The text is its path."""


@dataclass(frozen=True, slots=True)
class CacheTarget:
    """A repository at one commit and its place in the cache.

    Raises:
        AnswerError: the id of the repository or of the commit cannot be used.
    """

    repo_id: str
    commit: str
    cache: Path

    def __post_init__(self) -> None:
        if not is_repo_id(self.repo_id) or not is_commit(self.commit):
            raise AnswerError("id")

    @property
    def folder(self) -> Path:
        """The folder of the repository."""
        return self.cache / repo_folder_name(repo_id=self.repo_id, repo_type="model")

    @property
    def snapshot(self) -> Path:
        """The folder with the files of the commit."""
        return self.folder / "snapshots" / self.commit

    def blob(self, file: ListedFile) -> Path:
        """Return the place of a file's content."""
        return self.folder / "blobs" / file.digest

    def partial(self, file: ListedFile) -> Path:
        """Return the place of a file's content before it is complete."""
        return self.folder / "blobs" / f"{file.digest}{_PARTIAL}"

    def pointer(self, file: ListedFile) -> Path:
        """Return the place of a file in the snapshot.

        Raises:
            AnswerError: the path of the file cannot be used.
        """
        if not is_usable(file.path):
            raise AnswerError("path")
        return self.snapshot / file.path

    def make_folders(self) -> None:
        """Create the folders of the repository.

        Raises:
            LinkedFolderError: one of them is a link.
        """
        self.cache.mkdir(parents=True, exist_ok=True)
        for folder in (self.folder / "blobs", self.folder / "refs", self.snapshot):
            self._make_folder(folder)

    def has(self, path: Path, file: ListedFile) -> bool:
        """Return True if a path in the cache is a file of the right size, also through links."""
        try:
            is_inside = path.resolve(strict=True).is_relative_to(self.cache.resolve())
        except (OSError, RuntimeError):  # missing, or a loop of links
            return False
        return is_inside and path.is_file() and path.stat().st_size == file.size

    def link(self, file: ListedFile) -> None:
        """Put a file whose blob is complete into the snapshot.

        Raises:
            LinkedFolderError: a folder of its path is a link.
        """
        blob, pointer = self.blob(file), self.pointer(file)
        self._make_folder(pointer.parent)
        pointer.unlink(missing_ok=True)
        try:
            pointer.symlink_to(os.path.relpath(blob, pointer.parent))
        except OSError:  # a disk without symbolic links, such as exFAT
            blob.replace(pointer)

    def name_main(self) -> None:
        """Write refs/main, so that other programs find this commit as the branch main."""
        branch = self.folder / "refs" / "main"
        descriptor, fresh = tempfile.mkstemp(prefix=".main", dir=branch.parent)
        with os.fdopen(descriptor, "w", encoding="ascii") as content:
            content.write(self.commit)
        Path(fresh).replace(branch)

    def discard(self) -> None:
        """Remove the partial files of the repository."""
        blobs = self.folder / "blobs"
        if blobs.exists():
            self._make_folder(blobs)
            for path in blobs.glob(f"*{_PARTIAL}"):
                path.unlink(missing_ok=True)

    def _make_folder(self, folder: Path) -> None:
        """Create a folder below the cache, and the folders between."""
        path = self.cache
        for name in folder.relative_to(self.cache).parts:
            path /= name
            if path.is_symlink():
                raise LinkedFolderError(str(path))
            path.mkdir(exist_ok=True)


def open_partial(path: Path) -> int:
    """Open or create a partial file for reading and writing. Return its descriptor.

    A link or a special file at its place is removed, because writing would change another file.
    """
    if not is_partial(path):
        path.unlink(missing_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)


def is_partial(path: Path) -> bool:
    """Return True if a path is a regular file with this one name."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1
