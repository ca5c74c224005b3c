"""The files of attached pictures in the folder of the database. Each is stored once, by digest.

    pictures/<original>.jpg         the user's file without its metadata
    pictures/<digest>.png           the pixels that a model gets, named by Picture.digest
    pictures/<original>.small.png   the thumbnail

The files of a picture are written before the row that names them. So a crash in between leaves
files that nothing names, and `remove_unused` removes them later.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from app.conversation.attachments import AttachedPicture, PictureContent, view_size
from app.paths import PRIVATE_FOLDER
from app.settings import PictureSize
from engine.plain_file import read_plain
from engine.types import Picture
from engine.whole_file import write_whole

# Seconds for which a file is kept that nothing names: the draft that names it may not be saved yet.
UNUSED_KEPT_S = 3600.0
# The same for pictures that a removed chat had: only a draft that gets one just now may not be
# saved yet.
REMOVED_KEPT_S = 30.0

# Returns another view of a stored picture, and its PNG file: Extractor.view.
MakeView = Callable[[Path, PictureSize], tuple[Picture, bytes]]

FOLDER = "pictures"
_NAME = re.compile(r"([0-9a-f]{64})(?:\.small)?\.(?:png|jpg|webp)(?:\.part)?")
_lock = threading.Lock()  # write_whole allows one thread at a time for a file


class PictureFiles:
    """The folder of the stored pictures. Any thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def original(self, picture: AttachedPicture) -> Path:
        """Return the path of the user's file, without its metadata."""
        return self.folder / f"{picture.original}.{picture.extension}"

    def view(self, picture: Picture) -> Path:
        """Return the path of a PNG file with the pixels that a model gets."""
        return self.folder / f"{picture.digest}.png"

    def thumbnail(self, picture: AttachedPicture) -> Path:
        """Return the path of a PNG file with at most 640 pixels a side, turned upright."""
        return self.folder / f"{picture.original}.small.png"

    def add(self, picture: AttachedPicture, content: PictureContent) -> None:
        """Store the files of a picture. A file that is damaged is written again.

        Raises:
            OSError: a file cannot be written.
        """
        self._write(self.original(picture), content.original)
        self._write(self.view(picture.view), content.view)
        self._write(self.thumbnail(picture), content.thumbnail)

    def resized(
        self, picture: AttachedPicture, size: PictureSize, make_view: MakeView
    ) -> AttachedPicture:
        """Return a picture with its view in another size, whose file is stored.

        Raises:
            OSError: the file cannot be written.
            RefusedFileError: raised by make_view; the stored picture is gone or damaged.
        """
        wanted = view_size(picture.width, picture.height, size)
        if wanted == (picture.view.width, picture.view.height) and self._renew(
            self.view(picture.view)
        ):
            return replace(picture, size=size)
        view, content = make_view(self.original(picture), size)
        self._write(self.view(view), content)
        return replace(picture, size=size, view=view)

    @contextmanager
    def held(self) -> Generator[None]:
        """Let no file be written or deleted meanwhile. The caller may change `folder`."""
        with _lock:
            yield

    def complete_files(self) -> list[Path]:
        """Return the paths of the files of pictures that are completely written."""
        return [path for path in self._files() if is_picture_file(path)]

    def total_bytes(self) -> int:
        """Return the size of all files."""
        total = 0
        for path in self._files():
            with suppress(OSError):
                total += path.stat().st_size
        return total

    def remove_unused(
        self,
        used: Collection[str],
        *,
        among: Collection[str] | None = None,
        now: float | None = None,
    ) -> int:
        """Delete the files of pictures that are not used and not new. Return their number.

        Args:
            used: the digests that a message, a draft or a backup names.
            among: the digests that a removed chat had, if only its files may be deleted.
            now: Unix time; None for the present.
        """
        kept_s = UNUSED_KEPT_S if among is None else REMOVED_KEPT_S
        newest = (time.time() if now is None else now) - kept_s
        number = 0
        for path in self._files():
            name = _NAME.fullmatch(path.name)
            if name is None or name[1] in used or (among is not None and name[1] not in among):
                continue
            with _lock, suppress(OSError):
                if path.stat().st_mtime < newest:
                    path.unlink()
                    number += 1
        return number

    def _files(self) -> list[Path]:
        try:
            return list(self.folder.iterdir())
        except OSError:
            return []

    def _write(self, path: Path, content: bytes) -> None:
        with _lock:
            if _has(path, content) and self._renew(path):
                return
            self.folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            write_whole(path, content)

    @staticmethod
    def _renew(path: Path) -> bool:
        """Let a file be as if it was just written. Return False if it is not there."""
        try:
            os.utime(path)
        except OSError:
            return False
        return True


def is_picture_file(path: Path) -> bool:
    """Return True if a path has the name of a completely written file of a picture."""
    return _NAME.fullmatch(path.name) is not None and path.suffix != ".part"


def _has(path: Path, content: bytes) -> bool:
    try:
        return read_plain(path, len(content)) == content
    except OSError:
        return False
