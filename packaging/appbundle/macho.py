"""Reads Mach-O files: slices and load commands. Finds the paths where dyld looks for a library.

This module knows only the file format. The rules for a bundle are in appbundle/checks.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from appbundle.reading import BundleError, Bytes, read_bytes, span, text, unpack

EXECUTABLE: Final = 2  # file type of a program
MACOS: Final = 1  # platform number of macOS

_FAT: Final = b"\xca\xfe\xba\xbe"
_FAT_64: Final = b"\xca\xfe\xba\xbf"
# Byte order of a thin file, by its magic number.
_ORDERS: Final = {
    b"\xcf\xfa\xed\xfe": "<",
    b"\xce\xfa\xed\xfe": "<",
    b"\xfe\xed\xfa\xcf": ">",
    b"\xfe\xed\xfa\xce": ">",
}
_MAGIC_64: Final = b"\xcf\xfa\xed\xfe"
_HEADER_BYTES: Final = 32
# Maximum number of slices in a fat file. A Java class file begins with the same magic number as a
# fat file, but its next four bytes, read as a number of slices, are above this maximum.
_MOST_SLICES: Final = 20
_CPU_NAMES: Final = {0x0100000C: "arm64", 0x01000007: "x86_64", 0x00000007: "i386"}
_ARM64E: Final = 2  # CPU subtype of arm64e, a variant of arm64

_LOAD_DYLIB: Final = 0x0C
_ID_DYLIB: Final = 0x0D
_LOAD_WEAK_DYLIB: Final = 0x80000018
_RPATH: Final = 0x8000001C
_CODE_SIGNATURE: Final = 0x1D
_VERSION_MIN_MACOS: Final = 0x24
_BUILD_VERSION: Final = 0x32
# The load commands that name a library to load: normal, weak, reexport, upward and lazy.
_DEPENDENCIES: Final = {_LOAD_DYLIB, _LOAD_WEAK_DYLIB, 0x8000001F, 0x80000023, 0x20}

_SYSTEM: Final = ("/usr/lib/", "/System/Library/")  # folders of the libraries that belong to macOS


@dataclass(frozen=True, slots=True)
class Slice:
    """The code for one architecture in a Mach-O file."""

    architecture: str
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Dependency:
    """A library that the code loads. If it is weak, the code also runs without the library."""

    path: str
    weak: bool


@dataclass(frozen=True, slots=True)
class Build:
    """A platform that code is built for, and the oldest version on which the code runs."""

    platform: int
    oldest: tuple[int, int]  # major and minor version


@dataclass(frozen=True, slots=True)
class ByteSpan:
    """A byte range of a slice."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """The load commands of a slice."""

    file_type: int
    install_name: str | None
    dependencies: tuple[Dependency, ...]
    rpaths: tuple[str, ...]
    builds: tuple[Build, ...]
    signature: ByteSpan | None


def is_macho(data: Bytes) -> bool:
    """Return True if the first eight bytes of the data are those of a Mach-O file."""
    magic = bytes(data[:4])
    if magic in (_FAT, _FAT_64):
        return len(data) >= 8 and struct.unpack_from(">I", data, 4)[0] <= _MOST_SLICES
    return magic in _ORDERS


def read_slices(data: Bytes) -> tuple[Slice, ...]:
    """Return the slices of a Mach-O file. A thin file has only one slice.

    Raises:
        BundleError: the data is no Mach-O file, or is truncated.
    """
    if not is_macho(data):
        raise BundleError("is no Mach-O file")
    magic = bytes(data[:4])
    if magic in _ORDERS:
        cpu, subtype = unpack(_ORDERS[magic] + "2I", data, 4, "header")
        return (Slice(_architecture(cpu, subtype), 0, len(data)),)
    (count,) = unpack(">I", data, 4, "header")
    layout = ">2I2I4x" if magic == _FAT else ">2I2Q8x"
    found: list[Slice] = []
    for number in range(count):
        cpu, subtype, offset, size = unpack(
            layout, data, 8 + number * struct.calcsize(layout), "list of architectures"
        )
        architecture = _architecture(cpu, subtype)
        span(data, offset, size, f"{architecture} part")
        found.append(Slice(architecture, offset, size))
    return tuple(found)


def read_image(code: Bytes) -> Image:
    """Return the load commands of a 64-bit slice.

    Raises:
        BundleError: the slice is not 64-bit Mach-O code, or a command is truncated.
    """
    if bytes(code[:4]) != _MAGIC_64:
        raise BundleError("is no 64-bit Mach-O file")
    _, _, _, file_type, count, _, _, _ = unpack("<8I", code, 0, "header")
    names: list[str] = []
    dependencies: list[Dependency] = []
    rpaths: list[str] = []
    builds: list[Build] = []
    signature: ByteSpan | None = None
    for number, command in _commands(code, count):
        if number in _DEPENDENCIES:
            dependencies.append(Dependency(_path(command), number == _LOAD_WEAK_DYLIB))
        elif number == _ID_DYLIB:
            names.append(_path(command))
        elif number == _RPATH:
            rpaths.append(_path(command))
        elif number in (_BUILD_VERSION, _VERSION_MIN_MACOS):
            builds.append(_build(number, command))
        elif number == _CODE_SIGNATURE:
            offset, size = unpack("<2I", command, 8, "load commands")
            span(code, offset, size, "signature")
            signature = ByteSpan(offset, size)
    return Image(
        file_type=file_type,
        install_name=names[0] if names else None,
        dependencies=tuple(dependencies),
        rpaths=tuple(rpaths),
        builds=tuple(builds),
        signature=signature,
    )


def thin(path: Path) -> int:
    """Remove all slices except the arm64 slice from a file. Return the number of bytes saved.

    A thin file has only one slice and is not changed.

    Raises:
        BundleError: the file has no arm64 slice, or is no Mach-O file.
    """
    data = read_bytes(path)
    slices = read_slices(data)
    if bytes(data[:4]) in _ORDERS:
        return 0
    for piece in slices:
        if piece.architecture == "arm64":
            # Overwrite the file instead of replacing it, so that it keeps its mode.
            path.write_bytes(span(data, piece.offset, piece.size, "arm64 part"))
            return len(data) - piece.size
    raise BundleError("holds no arm64 code")


def is_system(path: str) -> bool:
    """Return True if a library at this path is part of macOS."""
    return os.path.normpath(path).startswith(_SYSTEM)


def expand(path: str, loader: Path, executable: Path) -> Path | None:
    """Replace @loader_path and @executable_path in a path as dyld does.

    `loader` is the file with the load command that contains the path. Return None for relative
    paths and for paths with @rpath.
    """
    first, _, rest = path.partition("/")
    if first == "@loader_path":
        return Path(os.path.normpath(loader.parent / rest))
    if first == "@executable_path":
        return Path(os.path.normpath(executable.parent / rest))
    return Path(os.path.normpath(path)) if path.startswith("/") else None


def candidates(
    path: str, loader: Path, executable: Path, rpaths: Sequence[Path]
) -> tuple[Path, ...]:
    """Return the paths where dyld looks for a library, in search order.

    `rpaths` are the search paths of the loading code. The caller has already expanded @loader_path
    and @executable_path in them.
    """
    if path.startswith("@rpath/"):
        rest = path.removeprefix("@rpath/")
        return tuple(Path(os.path.normpath(folder / rest)) for folder in rpaths)
    found = expand(path, loader, executable)
    return () if found is None else (found,)


def _architecture(cpu: int, subtype: int) -> str:
    name = _CPU_NAMES.get(cpu, hex(cpu))
    return "arm64e" if name == "arm64" and subtype & 0xFF == _ARM64E else name


def _commands(code: Bytes, count: int) -> Iterator[tuple[int, Bytes]]:
    offset = _HEADER_BYTES
    for _ in range(count):
        number, size = unpack("<2I", code, offset, "load commands")
        if size < 8:
            raise BundleError("is malformed: a load command is shorter than its own header")
        yield number, span(code, offset, size, "load commands")
        offset += size


def _path(command: Bytes) -> str:
    (offset,) = unpack("<I", command, 8, "load commands")
    return text(command[offset:], "library path")


def _build(number: int, command: Bytes) -> Build:
    if number == _VERSION_MIN_MACOS:
        (version,) = unpack("<I", command, 8, "load commands")
        platform = MACOS
    else:
        platform, version = unpack("<2I", command, 8, "load commands")
    return Build(platform, (version >> 16, version >> 8 & 0xFF))
