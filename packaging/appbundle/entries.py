"""Writes the entries of an archive to a folder: files, links and folders, with their modes."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


class UnsafeEntry(Exception):  # noqa: N818 - the message is the entry's path
    """The error for an archive entry that would be written outside the target folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """A file, folder or link in an archive.

    `mode` has kind and permissions, like st_mode. `read` yields the content, for a link its target.
    """

    path: PurePosixPath
    mode: int
    read: Callable[[], Iterator[bytes]]


def write_entries(entries: Iterable[FileEntry], folder: Path) -> None:
    """Write entries to a folder that has none of these files yet.

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
    # Links come after files, so that no file is written through a link. Modes of folders come last,
    # because a mode may forbid writing.
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
