"""Tests of appbundle.archives: unpacking gives back every file, link, folder and mode."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path
from unicodedata import normalize

import pytest

from appbundle import archives
from appbundle.archives import (
    ArchiveError,
    unpack_dmg,
    unpack_zip,
    why_no_dmg,
    write_dmg,
    write_zip,
)
from appbundle.entries import UnsafeEntry
from appbundle.udif import UdifError

NAME = "Öl und Öl.app"
CLIMBING = f"{NAME}/Contents/Resources/program"
READ_ONLY = f"{NAME}/Contents/Empty"
LARGE = 3 * (1 << 20) + 777  # bytes; more than one chunk, and no multiple of the sector size

needs_dmg = pytest.mark.skipif(why_no_dmg() is not None, reason=str(why_no_dmg()))
Facts = tuple[str, int, str | bytes]


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """Make a small bundle with links, modes and names that an archive may fail to restore."""
    root = tmp_path / "made" / NAME
    deep = root / "Contents" / "Resources" / "/".join("abcdefghijklm")
    deep.mkdir(parents=True)
    (deep / "plain.txt").write_text("deep down")
    (root / "Contents" / "Empty").mkdir()
    program = root / "Contents" / "MacOS" / "program"
    program.parent.mkdir()
    program.write_bytes(bytes(LARGE))
    program.chmod(0o755)
    resources = root / "Contents" / "Resources"
    (resources / "noise").write_bytes(os.urandom(LARGE))
    (resources / "nothing").touch()
    (resources / "für dich, 日本.txt").write_text("naïve")
    (resources / "read only").write_text("keep")
    (resources / "read only").chmod(0o444)
    (resources / "program").symlink_to("../MacOS/program")
    (resources / "Current").symlink_to("a")
    (resources / "nowhere").symlink_to("gone")
    (root / "Contents" / "Empty").chmod(0o555)
    return root


def facts(root: Path) -> list[Facts]:
    """Return the name, the mode, and the contents or the link target of every entry of a tree."""
    found: list[Facts] = []
    for path in [root, *sorted(root.rglob("*"))]:
        mode = path.lstat().st_mode
        name = path.relative_to(root.parent).as_posix()
        if path.is_symlink():
            found.append((name, stat.S_IFMT(mode), str(path.readlink())))
        else:
            found.append((name, mode, path.read_bytes() if path.is_file() else ""))
    return found


def test_zip_unpacks_to_the_packed_tree(app: Path, tmp_path: Path) -> None:
    archive = tmp_path / "dist" / "app.zip"
    write_zip(app, archive)
    unpack_zip(archive, tmp_path / "out")
    assert facts(tmp_path / "out" / NAME) == facts(app)


def test_zip_does_not_depend_on_file_times(app: Path, tmp_path: Path) -> None:
    write_zip(app, tmp_path / "one.zip")
    os.utime(app / "Contents" / "Resources" / "noise", (0, 0))
    write_zip(app, tmp_path / "two.zip")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


@pytest.mark.skipif(shutil.which("unzip") is None, reason="unzip is not installed")
def test_unzip_tool_unpacks_a_zip_to_the_packed_tree(app: Path, tmp_path: Path) -> None:
    write_zip(app, tmp_path / "app.zip")
    command = ["unzip", "-q", str(tmp_path / "app.zip"), "-d", str(tmp_path / "out")]
    subprocess.run(command, check=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
    assert facts(tmp_path / "out" / NAME) == facts(app)


@pytest.mark.parametrize("name", ["../outside", "/outside"])
def test_zip_entry_outside_the_target_folder_is_refused(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.writestr(name, "x")
    with pytest.raises(UnsafeEntry):
        unpack_zip(tmp_path / "bad.zip", tmp_path / "out")
    assert not (tmp_path / "outside").exists()


@needs_dmg
def test_disk_image_unpacks_to_the_packed_tree(app: Path, tmp_path: Path) -> None:
    image = tmp_path / "dist" / "app.dmg"
    write_dmg(app, image)
    unpack_dmg(image, tmp_path / "out")
    assert facts(tmp_path / "out" / NAME) == facts(app)
    assert (tmp_path / "out" / "Applications").readlink() == Path("/Applications")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["Applications", NAME]
    assert [path.name for path in image.parent.iterdir()] == ["app.dmg"]


@needs_dmg
@pytest.mark.skipif(sys.platform == "darwin", reason="hdiutil writes the time into an image")
def test_disk_image_does_not_depend_on_file_times(app: Path, tmp_path: Path) -> None:
    write_dmg(app, tmp_path / "one.dmg")
    os.utime(app / "Contents" / "Resources" / "noise", (0, 0))
    write_dmg(app, tmp_path / "two.dmg")
    assert (tmp_path / "one.dmg").read_bytes() == (tmp_path / "two.dmg").read_bytes()


@pytest.mark.slow
@needs_dmg
@pytest.mark.skipif(shutil.which("7z") is None, reason="7z is not installed")
@pytest.mark.skipif(sys.platform == "darwin", reason="macOS opens it itself")
def test_7z_unpacks_a_disk_image_to_the_packed_tree(app: Path, tmp_path: Path) -> None:
    """Unpack with 7z, which has its own code for both layers of the image: UDIF and HFS+."""
    write_dmg(app, tmp_path / "app.dmg")
    command = ["7z", "x", "-y", f"-o{tmp_path / 'out'}", str(tmp_path / "app.dmg")]
    subprocess.run(command, check=False, capture_output=True)
    (unpacked,) = (tmp_path / "out").glob("*/*.app")
    # Allow for differences of 7z: names stay in NFD, links with .. are skipped, folders are
    # writable.
    theirs = {normalize("NFC", name): rest for name, *rest in facts(unpacked)}
    ours = {name: rest for name, *rest in facts(app)}
    for name in (CLIMBING, READ_ONLY):
        del theirs[name], ours[name]
    assert theirs == ours


@needs_dmg
def test_damaged_disk_image_is_refused(app: Path, tmp_path: Path) -> None:
    image = tmp_path / "app.dmg"
    write_dmg(app, image)
    damaged = bytearray(image.read_bytes())
    damaged[700_000] ^= 1
    image.write_bytes(damaged)
    with pytest.raises((UdifError, ArchiveError)):
        unpack_dmg(image, tmp_path / "out")


def test_missing_xorriso_is_named_as_reason_for_no_disk_image(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def find_nothing(_name: str) -> None:
        return None

    monkeypatch.setattr(archives.shutil, "which", find_nothing)
    monkeypatch.setattr(archives.sys, "platform", "linux")
    said = why_no_dmg()
    assert said is not None
    assert "xorriso" in said
