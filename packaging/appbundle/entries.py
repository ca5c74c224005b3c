"""Writes the files, symbolic links and folders of an archive to disk, with their modes."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


class UnsafeEntry(Exception):  # noqa: N818 - the message is the entry's path
    """The error when an archive entry has a path outside the target folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """A file, folder or symbolic link in an archive.

    `mode` has the file type and permissions, like st_mode. `read` yields the content in chunks; the
    content of a link is its target.
    """

    path: PurePosixPath
    mode: int
    read: Callable[[], Iterator[bytes]]


def write_entries(entries: Iterable[FileEntry], folder: Path) -> None:
    """Write entries to a folder. None of the files may exist yet.

    Raises:
        UnsafeEntry: an entry would be written outside the folder.
    """
    folders: list[FileEntry] = []
    links: list[FileEntry] = []
    folder.mkdir(parents=True, exist_ok=True)
    for entry in entries:
        if entry.path.is_absolute() or ".." in entry.path.parts:
            raise UnsafeEntry(str(entry.path))
        place = folder / entry.path
        if stat.S_ISDIR(entry.mode):
            place.mkdir(parents=True, exist_ok=True)
            folders.append(entry)
        elif stat.S_ISLNK(entry.mode):
            links.append(entry)
        else:
            _write_file(entry, place)
    # Create links after all files, so that no file is written through a link. Set the modes of
    # folders last, because the mode of a folder may forbid writing into the folder.
    names = {link.path for link in links}
    for link in links:
        if not names.isdisjoint(link.path.parents):
            raise UnsafeEntry(str(link.path))
        (folder / link.path).parent.mkdir(parents=True, exist_ok=True)
        (folder / link.path).symlink_to(b"".join(link.read()).decode())
    for made in sorted(folders, key=lambda entry: entry.path, reverse=True):
        (folder / made.path).chmod(stat.S_IMODE(made.mode))


def _write_file(entry: FileEntry, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("xb") as out:
        for chunk in entry.read():
            out.write(chunk)
    place.chmod(stat.S_IMODE(entry.mode))
