"""Packs a bundle into a zip and a disk image. Also unpacks both, so that they can be checked.

With the same version of zlib, a bundle always gives the same zip and, on Linux, the same disk
image. On macOS, hdiutil makes and mounts disk images. On Linux, xorriso writes an HFS+ volume and
udif.py compresses the volume to a disk image. udif.py and hfsplus.py unpack such an image, and
restore its symbolic links and file modes.
"""

from __future__ import annotations

import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from appbundle.entries import FileEntry, write_entries
from appbundle.hfsplus import find_volume, read_volume
from appbundle.udif import read_udif, write_udif

CHUNK: Final = 1 << 20
LEVEL: Final = 6  # zlib compression level of the zip
TIME: Final = (2026, 1, 1, 0, 0, 0)  # time stamp of every file in an archive
DATE: Final = "2026010100000000"  # TIME in xorriso's notation
MADE_ON_UNIX: Final = 3  # ZipInfo.create_system for archives with Unix modes in external_attr
DOS_FOLDER: Final = 0x10  # the bit of ZipInfo.external_attr that marks a folder for DOS
APPLICATIONS: Final = "Applications"


class ArchiveError(Exception):
    """The error when an archive tool fails. The message includes the tool's error output."""


def write_zip(app: Path, target: Path) -> None:
    """Write the bundle to a zip file. Keep symbolic links and file modes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive:
        for path in [app, *sorted(app.rglob("*"))]:
            _add(archive, path, path.relative_to(app.parent).as_posix())


def _add(archive: zipfile.ZipFile, path: Path, name: str) -> None:
    facts = path.lstat()
    is_folder = stat.S_ISDIR(facts.st_mode)
    info = zipfile.ZipInfo(f"{name}/" if is_folder else name, TIME)
    info.create_system = MADE_ON_UNIX
    info.external_attr = facts.st_mode << 16 | (DOS_FOLDER if is_folder else 0)
    if is_folder:
        archive.writestr(info, b"")
    elif path.is_symlink():
        archive.writestr(info, str(path.readlink()))
    else:
        info.compress_type = zipfile.ZIP_DEFLATED
        info.file_size = facts.st_size
        with path.open("rb") as source, archive.open(info, "w") as out:
            shutil.copyfileobj(source, out, CHUNK)


def unpack_zip(archive: Path, folder: Path) -> None:
    """Unpack a zip file into a folder. Restore symbolic links and file modes."""
    with zipfile.ZipFile(archive) as opened:
        write_entries(
            (
                FileEntry(
                    path=PurePosixPath(info.filename),
                    mode=info.external_attr >> 16,
                    read=lambda info=info: _read(opened, info),
                )
                for info in opened.infolist()
            ),
            folder,
        )


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    with archive.open(info) as source:
        while chunk := source.read(CHUNK):
            yield chunk


def why_no_dmg() -> str | None:
    """Return the reason why this machine can't make disk images, or None if it can."""
    if _tool() is not None:
        return None
    return "No .dmg was made: xorriso is not installed (on Debian: apt-get install xorriso)."


def write_dmg(app: Path, target: Path) -> None:
    """Write a disk image with the bundle and a link to the Applications folder."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        volume = Path(scratch, app.stem)
        # The volume gets the mode of this folder. All users must be able to read the volume, but
        # only the owner can read a temporary folder. So make a subfolder.
        volume.mkdir()
        (volume / APPLICATIONS).symlink_to("/Applications")
        if sys.platform == "darwin":
            _write_with_hdiutil(app, volume, target)
        else:
            _write_with_xorriso(app, volume, target)


def unpack_dmg(archive: Path, folder: Path) -> None:
    """Unpack a disk image into a folder: the bundle and the link to the Applications folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        if sys.platform == "darwin":
            _unpack_with_hdiutil(archive, Path(scratch), folder)
            return
        raw = Path(scratch, "volume")
        read_udif(archive, raw)
        with raw.open("rb") as volume:
            write_entries(read_volume(volume), folder)


def _tool() -> str | None:
    return shutil.which("hdiutil" if sys.platform == "darwin" else "xorriso")


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise ArchiveError(f"{command[0]} failed: {done.stderr.strip()}")


def _write_with_xorriso(app: Path, volume: Path, target: Path) -> None:
    """Write the disk image with xorriso.

    xorriso makes a hybrid image of ISO 9660 and HFS+. Only the HFS+ volume of this image goes into
    `target`.
    """
    raw = volume.with_name("raw")
    _run(
        *("xorriso", "-report_about", "SORRY", "-as", "mkisofs"),
        *("-V", volume.name, "-hfsplus", "-R", "-D", "-no-pad", "-uid", "0", "-gid", "0"),
        *(f"--modification-date={DATE}", "--set_all_file_dates", DATE),
        *("-o", raw, "-graft-points", f"/={volume}", f"/{app.name}={app}"),
    )
    with raw.open("rb") as image:
        found = find_volume(image)
        image.seek(found.start)
        write_udif(image, found.size, target)


def _write_with_hdiutil(app: Path, volume: Path, target: Path) -> None:
    shutil.copytree(app, volume / app.name, symlinks=True)
    _run(
        *("hdiutil", "create", "-quiet", "-volname", volume.name, "-srcfolder", volume),
        *("-fs", "HFS+", "-format", "UDZO", target),
    )


def _unpack_with_hdiutil(archive: Path, mount: Path, folder: Path) -> None:
    _run("hdiutil", "attach", "-quiet", "-readonly", "-nobrowse", "-mountpoint", mount, archive)
    try:
        for app in mount.glob("*.app"):
            shutil.copytree(app, folder / app.name, symlinks=True)
        (folder / APPLICATIONS).symlink_to((mount / APPLICATIONS).readlink())
    finally:
        # Use -force, because Spotlight may have files open on the volume.
        _run("hdiutil", "detach", "-quiet", "-force", mount)
