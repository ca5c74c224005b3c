"""Checks of the file tree: unneeded files, symbolic links, file names and file modes."""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from appbundle.bundle import Bundle

_BUILD_SUFFIXES = frozenset(
    {".a", ".cmake", ".h", ".hpp", ".la", ".o", ".pc", ".pxd", ".pyi", ".pyx", ".whl"}
)
_FOREIGN_SUFFIXES = frozenset({".dll", ".exe", ".lib", ".pyd"})
_TEST_FOLDERS = frozenset({"tests", "idle_test"})


def stray_files(bundle: Bundle) -> Iterator[str]:
    """Check that the bundle has no files for building or testing, and no leftovers of tools."""
    for path in bundle.files:
        if path.suffix in _BUILD_SUFFIXES:
            yield f"{bundle.name(path)} is of use in building only"
        elif path.suffix in _FOREIGN_SUFFIXES:
            yield f"{bundle.name(path)} is of use on Windows only"
        elif path.name.startswith("."):
            yield f"{bundle.name(path)} is hidden: something left it behind"
    for folder in bundle.folders:
        if folder.name in _TEST_FOLDERS:
            yield f"{bundle.name(folder)} holds tests"
        elif folder.name == "__MACOSX":
            yield f"{bundle.name(folder)} was left behind by an archiver"


def symbolic_links(bundle: Bundle) -> Iterator[str]:
    """Check that every symbolic link is relative and leads to a file inside the bundle."""
    for path in bundle.links:
        target = path.readlink()
        if target.is_absolute():
            yield f"{bundle.name(path)} is a link to the absolute path {target}"
        elif not Path(os.path.normpath(path.parent / target)).is_relative_to(bundle.layout.app):
            yield f"{bundle.name(path)} leads out of the bundle, to {target}"
        elif not os.path.exists(path):  # noqa: PTH110 - Path.exists raises if links go in circles
            yield f"{bundle.name(path)} leads to {target}, which is not there"
        elif not bundle.holds(path):
            yield f"{bundle.name(path)} leads out of the bundle through another link"


def file_names(bundle: Bundle) -> Iterator[str]:
    """Check that every file name is valid and unique on a Mac.

    macOS accepts only UTF-8 names, shows a colon as a slash, and does not distinguish between
    upper and lower case.
    """
    taken: dict[str, str] = {}
    for path, name in bundle.everything.items():
        if not _is_utf8(path.name):
            yield f"{name} is not UTF-8"
        if ":" in path.name:
            yield f"{name} has a colon in it"
        same = unicodedata.normalize("NFD", name).casefold()
        if same in taken:
            yield f"{name} and {taken[same]} are one file on a Mac"
        taken[same] = name


def file_modes(bundle: Bundle) -> Iterator[str]:
    """Check that all users may read every file, because a Mac's users share installed apps.

    Also check that no file is writable for all users, and that none has a setuid, setgid or sticky
    bit.
    """
    for path in (*bundle.folders, *bundle.files):
        mode = path.stat().st_mode
        needed = 0o555 if stat.S_ISDIR(mode) else 0o444
        if mode & needed != needed:
            yield f"{bundle.name(path)} has the mode {mode & 0o777:03o}: not everyone can read it"
        elif mode & 0o7002:
            yield f"{bundle.name(path)} has the mode {mode & 0o7777:03o}: it grants too much"
    for path in bundle.devices:
        yield f"{bundle.name(path)} is neither a file nor a folder nor a link"


def _is_utf8(name: str) -> bool:
    """Return True if a file name is valid UTF-8. Python shows invalid bytes as lone surrogates."""
    return not any("\ud800" <= character <= "\udfff" for character in name)
