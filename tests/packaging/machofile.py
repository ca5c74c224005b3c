"""Writes small signed Mach-O files for tests.

The writer follows the description of the format and shares no code with the reader under test. The
hashes in a signature are zeros until `signing.rehashed` fills them in.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

PAGE = 4096
ARM64 = 0x0100000C
X86_64 = 0x01000007
PROGRAM = 2
LIBRARY = 6
MODULE = 8

SEGMENT = 0x19
LOAD_DYLIB = 0x0C
LOAD_WEAK_DYLIB = 0x80000018
REEXPORT_DYLIB = 0x8000001F
ID_DYLIB = 0x0D
RPATH = 0x8000001C
CODE_SIGNATURE = 0x1D
BUILD_VERSION = 0x32


@dataclass(frozen=True, slots=True, kw_only=True)
class MachO:
    """The contents of a Mach-O file. Its header and code fill a page and a half."""

    file_type: int = LIBRARY
    cpu: int = ARM64
    name: str | None = None
    needs: tuple[str, ...] = ("/usr/lib/libSystem.B.dylib",)
    needs_weakly: tuple[str, ...] = ()
    reexports: tuple[str, ...] = ()
    rpaths: tuple[str, ...] = ()
    platform: int = 1  # number of the platform; 1 is macOS
    oldest: tuple[int, int] = (11, 0)  # minimum version of macOS
    identifier: str = "library"  # identifier in the signature; empty for an unsigned file
    flags: int = 2  # flags in the signature; 2 means an ad hoc signature

    def unsigned(self) -> MachO:
        return replace(self, identifier="")

    def written(self) -> bytes:
        """Return the bytes of the file. A file without an identifier gets no signature."""
        commands = [
            struct.pack("<6I", BUILD_VERSION, 24, self.platform, _packed(self.oldest), 0, 0),
            *([] if self.name is None else [_library(ID_DYLIB, self.name)]),
            *(_library(LOAD_DYLIB, path) for path in self.needs),
            *(_library(LOAD_WEAK_DYLIB, path) for path in self.needs_weakly),
            *(_library(REEXPORT_DYLIB, path) for path in self.reexports),
            *(_string(RPATH, path, b"") for path in self.rpaths),
        ]
        signature = _signature(self.identifier, self.flags, _CODE_BYTES) if self.identifier else b""
        commands.append(_segment("__TEXT", 0, _CODE_BYTES))
        commands.append(_segment("__LINKEDIT", _CODE_BYTES, len(signature)))
        if signature:
            commands.append(struct.pack("<4I", CODE_SIGNATURE, 16, _CODE_BYTES, len(signature)))
        loads = b"".join(commands)
        head = struct.pack(
            "<8I", 0xFEEDFACF, self.cpu, 0, self.file_type, len(commands), len(loads), 0, 0
        )
        return (head + loads).ljust(_CODE_BYTES, b"\xc3") + signature


def fat(*thin: bytes) -> bytes:
    """Return a universal file that contains the given thin files."""
    head = struct.pack(">2I", 0xCAFEBABE, len(thin))
    body = b""
    for data in thin:
        body = body.ljust(-(-len(body) // PAGE) * PAGE, b"\0")
        cpu, subtype = struct.unpack_from("<2I", data, 4)
        head += struct.pack(">5I", cpu, subtype, PAGE + len(body), len(data), 12)
        body += data
    return head.ljust(PAGE, b"\0") + body


_CODE_BYTES = PAGE + PAGE // 2
_SLOTS = 7


def _signature(identifier: str, flags: int, code_bytes: int) -> bytes:
    pages = -(-code_bytes // PAGE)
    name = identifier.encode() + b"\0"
    hashes_at = 44 + len(name) + _SLOTS * 32
    directory = struct.pack(
        ">9I4BI",
        0xFADE0C02,
        hashes_at + pages * 32,
        0x20001,
        flags,
        hashes_at,
        44,
        _SLOTS,
        pages,
        code_bytes,
        32,  # size of a hash in bytes
        2,  # hash type: SHA-256
        0,
        12,  # log2 of the page size in bytes
        0,
    )
    directory = directory + name
    directory += bytes((_SLOTS + pages) * 32)
    requirements = struct.pack(">3I", 0xFADE0C01, 12, 0)
    start = 12 + 2 * 8
    index = struct.pack(">4I", 0, start, 2, start + len(directory))
    size = start + len(directory) + len(requirements)
    return struct.pack(">3I", 0xFADE0CC0, size, 2) + index + directory + requirements


def _segment(name: str, offset: int, size: int) -> bytes:
    at = offset + PAGE - offset % PAGE  # address of the segment in memory
    room = size + PAGE - size % PAGE
    return struct.pack("<2I16s4Q4I", SEGMENT, 72, name.encode(), at, room, offset, size, 5, 5, 0, 0)


def _library(number: int, path: str) -> bytes:
    return _string(number, path, struct.pack("<3I", 2, 0, 0))


def _string(number: int, text: str, between: bytes) -> bytes:
    start = 12 + len(between)
    body = text.encode() + b"\0"
    size = -(-(start + len(body)) // 8) * 8
    return (struct.pack("<3I", number, size, start) + between + body).ljust(size, b"\0")


def _packed(version: tuple[int, int]) -> int:
    return version[0] << 16 | version[1] << 8
