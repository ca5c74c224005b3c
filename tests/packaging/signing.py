"""Renews the signatures and seals of a bundle after a change, in place.

Works on the crafted bundle and on bundles that `codesign` or another signer has signed.
"""

from __future__ import annotations

import hashlib
import plistlib
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.packaging.tree import Tree

RULES: dict[str, Any] = {
    r".*\.dSYM($|/)": {"weight": 11.0},
    r"^(.*/)?\.DS_Store$": {"omit": True, "weight": 2000.0},
    r"^.*": True,
    r"^Info\.plist$": {"omit": True, "weight": 20.0},
    r"^PkgInfo$": {"omit": True, "weight": 20.0},
    r"^Resources/": {"weight": 20.0},
    r"^Resources/.*\.lproj/": {"optional": True, "weight": 1000.0},
    r"^Resources/.*\.lproj/locversion.plist$": {"omit": True, "weight": 1100.0},
}
_INFO_PLIST, _REQUIREMENTS, _RESOURCES = 1, 2, 3
_HASHES: dict[int, Callable[[bytes], bytes]] = {
    1: lambda data: hashlib.sha1(data).digest(),
    2: lambda data: hashlib.sha256(data).digest(),
    3: lambda data: hashlib.sha256(data).digest()[:20],
    4: lambda data: hashlib.sha384(data).digest(),
}


def rehashed(data: bytes) -> bytes:
    """Renew the hashes of code and requirements in the signature of a thin file."""
    changed = bytearray(data)
    for directory, blobs in _directories(data):
        table, num_slots, num_pages, limit, size, kind, shift = directory
        page = 1 << shift
        for number in range(num_pages):
            digest = _HASHES[kind](data[number * page : min((number + 1) * page, limit)])
            changed[table + number * size : table + (number + 1) * size] = digest
        if _REQUIREMENTS in blobs and num_slots >= _REQUIREMENTS:
            at = table - _REQUIREMENTS * size
            changed[at : at + size] = _HASHES[kind](blobs[_REQUIREMENTS])
    return bytes(changed)


def reseal(tree: Tree) -> None:
    """Renew the seals of the changed frameworks, then the seal of the app."""
    for folder in tree.layout.site_packages.glob("PySide6/Qt/lib/*.framework/Versions/A"):
        resources = folder / "Resources"
        _reseal(
            tree, _SignedPlace(folder, folder / folder.parents[1].stem, resources / "Info.plist")
        )
    reseal_outside(tree)


def reseal_outside(tree: Tree) -> None:
    """Renew the seal of the app, but not the seals of its frameworks."""
    _reseal(tree, _outer(tree))


def bind(tree: Tree) -> None:
    """Write the hashes of Info.plist and of the seal into the executable's signature."""
    _bind(tree, _outer(tree))


@dataclass(frozen=True, slots=True)
class _SignedPlace:
    """A folder with a seal of its own: the app, or a framework in the app."""

    contents: Path
    executable: Path
    info_plist: Path

    @property
    def seal(self) -> Path:
        return self.contents / "_CodeSignature" / "CodeResources"


def _outer(tree: Tree) -> _SignedPlace:
    layout = tree.layout
    return _SignedPlace(layout.contents, layout.executable, layout.info_plist)


def _reseal(tree: Tree, sealed: _SignedPlace) -> None:
    contents = sealed.contents
    touched = sorted(path for path in tree.changed if path.is_relative_to(contents))
    if not touched or not sealed.seal.exists():
        return
    seal: dict[str, Any] = plistlib.loads(sealed.seal.read_bytes())
    files = seal["files2"]
    for changed in touched:
        gone = changed.relative_to(contents).as_posix()
        for name in [name for name in files if name == gone or name.startswith(f"{gone}/")]:
            del files[name]
        for file in _files_below(changed):
            name = file.relative_to(contents).as_posix()
            if file != sealed.executable and _is_sealed(name, seal["rules2"]):
                files[name] = _entry(file)
    tree.write(sealed.seal, plistlib.dumps(seal))
    _bind(tree, sealed)


def _bind(tree: Tree, sealed: _SignedPlace) -> None:
    if not sealed.executable.exists():
        return
    bound = {_INFO_PLIST: sealed.info_plist, _RESOURCES: sealed.seal}
    data = sealed.executable.read_bytes()
    changed = bytearray(data)
    for directory, _ in _directories(data):
        table, num_slots, _, _, size, kind, _ = directory
        for slot, path in bound.items():
            if slot <= num_slots and path.exists():
                at = table - slot * size
                changed[at : at + size] = _HASHES[kind](path.read_bytes())
    tree.write(sealed.executable, bytes(changed))


def signature_at(data: bytes) -> int | None:
    """Return the offset of the signature in a thin file, or None if the file is unsigned."""
    for command, at, _ in load_commands(data):
        if command == 0x1D:
            return struct.unpack_from("<I", data, at + 8)[0]
    return None


def load_commands(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield number, offset and size of each load command of a thin file."""
    if data[:4] != b"\xcf\xfa\xed\xfe":
        return
    (count,) = struct.unpack_from("<I", data, 16)
    at = 32
    for _ in range(count):
        command, size = struct.unpack_from("<2I", data, at)
        yield command, at, size
        at += size


# Fields of a code directory: offset of the page hashes in the file, number of special slots, number
# of pages, end of the hashed code, size of a hash in bytes, hash type, log2 of the page size.
_Directory = tuple[int, int, int, int, int, int, int]


def _directories(data: bytes) -> Iterator[tuple[_Directory, dict[int, bytes]]]:
    start = signature_at(data)
    if start is None:
        return
    (count,) = struct.unpack_from(">I", data, start + 8)
    places = [struct.unpack_from(">2I", data, start + 12 + 8 * n) for n in range(count)]
    blobs: dict[int, bytes] = {}
    for slot, offset in places:
        (size,) = struct.unpack_from(">I", data, start + offset + 4)
        blobs[slot] = data[start + offset : start + offset + size]
    for slot, offset in places:
        if slot == 0 or 0x1000 <= slot < 0x1005:
            at = start + offset
            hashes_at, _, num_slots, num_pages, limit = struct.unpack_from(">5I", data, at + 16)
            size, kind, _, shift = struct.unpack_from(">4B", data, at + 36)
            yield (at + hashes_at, num_slots, num_pages, limit, size, kind, shift), blobs


def _files_below(path: Path) -> Iterator[Path]:
    if path.is_symlink() or path.is_file():
        yield path
    elif path.is_dir():
        for entry in path.iterdir():
            yield from _files_below(entry)


def _is_sealed(name: str, rules: dict[str, Any]) -> bool:
    if name.startswith("_CodeSignature/"):
        return False
    matching = [rule for pattern, rule in rules.items() if re.search(pattern, name)]
    heaviest: dict[str, Any] = {}
    for rule in matching:
        facts: dict[str, Any] = {} if rule is True else rule
        if facts.get("weight", 1.0) >= heaviest.get("weight", 0.0):
            heaviest = facts
    return bool(matching) and not heaviest.get("omit")


def _entry(path: Path) -> dict[str, Any]:
    if path.is_symlink():
        return {"symlink": str(path.readlink())}
    with path.open("rb") as file:
        return {"hash2": hashlib.file_digest(file, "sha256").digest()}
