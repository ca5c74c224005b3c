"""Move files and folders to the Trash of the platform, or delete them.

A window moves them with Qt's function, which can also use the Trash of another volume.
"""

from __future__ import annotations

import os
import shutil
import sys
from datetime import datetime
from itertools import count
from pathlib import Path
from urllib.parse import quote

from engine.errors import DiskError


def move_to_trash(path: Path) -> None:
    """Move a file or a folder to the user's Trash. A link is moved itself, not what it leads to.

    Source: the Trash specification of freedesktop.org 1.0, for systems other than macOS.

    Raises:
        DiskError: it is on another volume than the Trash, or cannot be moved.
    """
    try:
        if sys.platform == "darwin":
            _move(path, Path.home() / ".Trash", None)
        else:
            data = os.environ.get("XDG_DATA_HOME")
            trash = (Path(data) if data else Path.home() / ".local" / "share") / "Trash"
            _move(path, trash / "files", trash / "info")
    except OSError as error:
        raise DiskError(
            f"{path} can’t be moved to the Trash: {error.strerror}.",
            advice="Remove it in the Finder, or in the file manager.",
        ) from error


def delete(path: Path) -> None:
    """Delete a file or a folder. A link is deleted itself, not what it leads to.

    Raises:
        DiskError: it cannot be deleted.
    """
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    except OSError as error:
        raise DiskError(
            f"{path} can’t be deleted: {error.strerror}.",
            advice="Remove it in the Finder, or in the file manager.",
        ) from error


def _move(path: Path, files: Path, info: Path | None) -> None:
    for folder in (files, info):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    name = _free_name(path, files)
    record = None if info is None else info / f"{name}.trashinfo"
    if record is not None:
        time = datetime.now().astimezone().strftime("%Y-%m-%dT%H:%M:%S")
        with record.open("x", encoding="utf-8") as file:
            place = quote(os.fsencode(path.absolute()))
            file.write(f"[Trash Info]\nPath={place}\nDeletionDate={time}\n")
    try:
        # A rename never copies: it fails if the Trash is on another volume.
        path.rename(files / name)
    except OSError:
        if record is not None:
            record.unlink()
        raise


def _free_name(path: Path, files: Path) -> str:
    names = (
        path.name if number == 1 else f"{path.stem} {number}{path.suffix}" for number in count(1)
    )
    return next(name for name in names if not os.path.lexists(files / name))
