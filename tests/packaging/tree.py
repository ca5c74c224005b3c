"""A bundle that tests can change. Its hard-linked copies are not affected by a change."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from appbundle.spec import BundleLayout, Spec


class Tree:
    """A bundle on disk, with methods for all changes that tests make to it.

    A change replaces the file and does not write into it, so that a hard-linked copy keeps the old
    contents.
    """

    def __init__(self, app: Path, spec: Spec, archives: tuple[Path, ...] = ()) -> None:
        self.layout = BundleLayout(app, spec.name, spec.python)
        self.spec = spec
        self.archives = archives
        # Paths that were written, moved or removed. signing.py renews their entries in the seals.
        self.changed: set[Path] = set()

    def copied(self, folder: Path) -> Tree:
        """Copy the bundle into `folder`. The copied files are hard links, which take no space."""
        app = folder / self.layout.app.name
        shutil.copytree(self.layout.app, app, symlinks=True, copy_function=os.link)
        return Tree(app, self.spec, self.archives)

    def write(self, path: Path, data: bytes, mode: int | None = None) -> None:
        """Create or replace a file. Without `mode` an existing file keeps its mode."""
        if mode is None:
            mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
        path.parent.mkdir(parents=True, exist_ok=True)
        self._unlink(path)
        path.write_bytes(data)
        path.chmod(mode)
        self.changed.add(path)

    def edit(self, path: Path, change: Callable[[bytes], bytes]) -> None:
        self.write(path, change(path.read_bytes()))

    def chmod(self, path: Path, mode: int) -> None:
        self.write(path, path.read_bytes(), mode)

    def truncate(self, path: Path, size: int) -> None:
        """Create or replace a file with a sparse file of the given size."""
        self.write(path, b"")
        os.truncate(path, size)

    def make_folder(self, path: Path) -> None:
        path.mkdir(parents=True)

    def link(self, path: Path, target: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._unlink(path)
        path.symlink_to(target)
        self.changed.add(path)

    def remove(self, path: Path) -> None:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
        self.changed.add(path)

    def move(self, path: Path, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
        self.changed |= {path, target}

    def _unlink(self, path: Path) -> None:
        path.unlink(missing_ok=True)


def contents(app: Path) -> dict[str, str]:
    """Return a dict. Key: file name. Value: mode and digest of a file, or target of a link."""
    found: dict[str, str] = {}
    for path in sorted(app.rglob("*")):
        name = str(path.relative_to(app))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file():
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "blake2b").hexdigest()
            found[name] = f"{path.stat().st_mode:o} {digest}"
    return found
