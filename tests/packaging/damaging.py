"""Functions that damage a bundle, for the table in damages.py.

There are three types of function. A Place returns a path in a bundle. An Action changes a bundle. A
Change takes the bytes of a file and returns changed bytes. All work on real and on crafted bundles.
"""

from __future__ import annotations

import json
import plistlib
import struct
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.packaging.machofile import BUILD_VERSION, CODE_SIGNATURE, X86_64, fat
from tests.packaging.signing import load_commands, rehashed, signature_at
from tests.packaging.tree import Tree

Place = Callable[[Tree], Path]
Action = Callable[[Tree], object]
Change = Callable[[bytes], bytes]

# Offsets of fields in a code directory.
_DIRECTORY_FLAGS = 12
_DIRECTORY_IDENTIFIER = 20


# Places, and functions that return a Place.


def root(name: str) -> Place:
    return lambda tree: tree.layout.app / name


def resource(name: str) -> Place:
    return lambda tree: tree.layout.resources / name


def site(name: str) -> Place:
    return lambda tree: tree.layout.site_packages / name


def model(name: str) -> Place:
    return lambda tree: _only(path for path in tree.layout.models.iterdir() if path.is_dir()) / name


def distribution(name: str) -> Place:
    """Return a Place that finds the dist-info folder of an installed package."""
    return lambda tree: _only(tree.layout.site_packages.glob(f"{name}-*.dist-info"))


def executable(tree: Tree) -> Path:
    return tree.layout.executable


def seal(tree: Tree) -> Path:
    return tree.layout.contents / "_CodeSignature" / "CodeResources"


# Functions that return an Action (see the module docstring).


def removed(place: Place) -> Action:
    return lambda tree: tree.remove(place(tree))


def written(place: Place, data: bytes) -> Action:
    return lambda tree: tree.write(place(tree), data)


def edited(place: Place, change: Change) -> Action:
    return lambda tree: tree.edit(place(tree), change)


def linked(place: Place, target: str) -> Action:
    return lambda tree: tree.link(place(tree), target)


def moved(place: Place, target: Place) -> Action:
    return lambda tree: tree.move(place(tree), target(tree))


def copied(place: Place, target: Place) -> Action:
    return lambda tree: tree.write(target(tree), place(tree).read_bytes())


def with_mode(place: Place, mode: int) -> Action:
    return lambda tree: tree.chmod(place(tree), mode)


def with_folder(place: Place) -> Action:
    return lambda tree: tree.make_folder(place(tree))


def with_plist(**facts: object) -> Action:
    """Return an action that sets keys of Info.plist, and removes the keys whose value is None."""

    def change(data: bytes) -> bytes:
        merged = {**plistlib.loads(data), **facts}
        return plistlib.dumps({key: value for key, value in merged.items() if value is not None})

    return lambda tree: tree.edit(tree.layout.info_plist, change)


def both(first: Action, second: Action) -> Action:
    def do(tree: Tree) -> None:
        first(tree)
        second(tree)

    return do


# Changes, and functions that return a Change.


def cut(size: int) -> Change:
    """Return a change that truncates data to data[:size]."""
    return lambda data: data[:size]


def appended(more: bytes) -> Change:
    return lambda data: data + more


def replaced(at: int, new: bytes) -> Change:
    return lambda data: data[:at] + new + data[at + len(new) :]


def flipped_in_the_middle(data: bytes) -> bytes:
    """Invert a byte in the middle of the code of a thin Mach-O file."""
    at = (signature_at(data) or len(data)) // 2
    return replaced(at, bytes([data[at] ^ 0xFF]))(data)


def flipped_at_the_end_of(slot: int) -> Change:
    """Return a change that inverts the last byte of a signature blob and keeps its stored hash."""

    def change(data: bytes) -> bytes:
        start = _blob(data, slot)
        at = start + struct.unpack_from(">I", data, start + 4)[0] - 1
        return replaced(at, bytes([data[at] ^ 0xFF]))(data)

    return change


def with_x86(data: bytes) -> bytes:
    return fat(data, for_x86(data))


def for_x86(data: bytes) -> bytes:
    return replaced(4, struct.pack("<I", X86_64))(data)


def as_a_library(data: bytes) -> bytes:
    return rehashed(replaced(12, struct.pack("<I", 6))(data))


def for_macos(major: int) -> Change:
    def change(data: bytes) -> bytes:
        at = _command(data, BUILD_VERSION) + 12
        return rehashed(replaced(at, struct.pack("<I", major << 16))(data))

    return change


def for_platform(platform: int) -> Change:
    def change(data: bytes) -> bytes:
        at = _command(data, BUILD_VERSION) + 8
        return rehashed(replaced(at, struct.pack("<I", platform))(data))

    return change


def unsigned(data: bytes) -> bytes:
    """Hide the signature: turn its load command into LC_DATA_IN_CODE (0x29)."""
    return replaced(_command(data, CODE_SIGNATURE), struct.pack("<I", 0x29))(data)


def naming(old: str, new: str) -> Change:
    """Return a change that replaces the path in a load command with `new`.

    It changes the first load command whose path starts with `old`. `new` is padded with zeros, so
    that the load command keeps its size.
    """

    def change(data: bytes) -> bytes:
        for number, at, size in load_commands(data):
            if number not in _WITH_PATHS:
                continue
            (start,) = struct.unpack_from("<I", data, at + 8)
            if data[at + start : at + size].startswith(old.encode()):
                assert len(new) < size - start
                return rehashed(replaced(at + start, new.encode().ljust(size - start, b"\0"))(data))
        raise LookupError(f"no load command names {old}")

    return change


def signed_as(letter: bytes) -> Change:
    """Return a change that replaces the first letter of the identifier in a signature."""

    def change(data: bytes) -> bytes:
        directory = _blob(data, 0)
        at = directory + struct.unpack_from(">I", data, directory + _DIRECTORY_IDENTIFIER)[0]
        return replaced(at, letter)(data)

    return change


def with_flags(flags: int) -> Change:
    def change(data: bytes) -> bytes:
        return replaced(_blob(data, 0) + _DIRECTORY_FLAGS, struct.pack(">I", flags))(data)

    return change


def leaving_out(pattern: str) -> Change:
    """Return a change that adds a rule to a seal: omit the files that match `pattern`."""

    def change(data: bytes) -> bytes:
        content = plistlib.loads(data)
        content["rules2"][pattern] = {"omit": True, "weight": 3000.0}
        return plistlib.dumps(content)

    return change


def with_longer_tensors(data: bytes) -> bytes:
    """Lengthen the last tensor in a safetensors header by two bytes, but add no data."""
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    last = max((entry for entry in header.values() if "data_offsets" in entry), key=_end)
    last["data_offsets"][1] += 2
    changed = json.dumps(header).encode()
    return struct.pack("<Q", len(changed)) + changed + data[8 + length :]


# Load commands that contain a path: LC_LOAD_DYLIB, LC_LOAD_WEAK_DYLIB, LC_REEXPORT_DYLIB, LC_RPATH.
_WITH_PATHS = (0x0C, 0x80000018, 0x8000001F, 0x8000001C)


def _only(paths: Iterable[Path]) -> Path:
    (path,) = paths
    return path


def _end(entry: dict[str, list[int]]) -> int:
    return entry["data_offsets"][1]


def _command(data: bytes, wanted: int) -> int:
    return next(at for number, at, _ in load_commands(data) if number == wanted)


def _blob(data: bytes, wanted: int) -> int:
    """Return the offset in the file of the signature blob in slot `wanted`."""
    start = signature_at(data)
    assert start is not None
    (count,) = struct.unpack_from(">I", data, start + 8)
    index = [struct.unpack_from(">2I", data, start + 12 + 8 * n) for n in range(count)]
    return start + next(offset for slot, offset in index if slot == wanted)
