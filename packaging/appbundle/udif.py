"""A compressed disk image (.dmg: UDIF, zlib) from a raw volume, and the way back.

    chunks | property list that holds the block table ("mish") | trailer ("koly")

There is one table for the whole disk, as in what `hdiutil create -layout NONE` writes. Then the image's
variant is 2: with 1, others saw, hdiutil looks for a partition map and refuses. Chunks of zeros are compressed
like others: zero-fill chunks would be left out of the table's checksum. All numbers are big-endian.
"""

from __future__ import annotations

import os
import plistlib
import struct
import uuid
import zlib
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from struct import Struct
from typing import BinaryIO, Final
from xml.parsers.expat import ExpatError

SECTOR: Final = 512
CHUNK_SECTORS: Final = 2048
LEVEL: Final = 6

RAW: Final = 0x00000001
ZLIB: Final = 0x80000005
END: Final = 0xFFFFFFFF
WHOLE_DISK: Final = 0xFFFFFFFE
VARIANT: Final = 2
CRC32: Final = 2

_RUN = Struct(">I4x4Q")  # kind, first sector, sectors, offset, length
# signature, version, first sector, sectors, data offset, buffer sectors, descriptor, checksum, runs
_TABLE = Struct(">4sI3QII24x136sI")
_CHECKSUM = Struct(">III124x")  # kind, bits, value
# signature, version, size, flags, running offset, data offset, data length, resources (2), segment, segments,
# segment's name, data checksum, list's offset, list's length, checksum, variant, sectors
_TRAILER = Struct(">4sIII5QII16s136s2Q120x136sIQ12x")
NAME: Final = "whole disk (Apple_HFS : 0)"
# hdiutil writes this beside each table: zeros but for two ones.
_PLST: Final = bytes(517) + b"\1\0\1" + bytes(512)


class UdifError(Exception):
    """This is no disk image of our kind, or a damaged one."""


@dataclass(frozen=True, slots=True)
class BlockRun:
    """A stretch of sectors, and where its bytes lie in the file."""

    kind: int
    first_sector: int
    sectors: int
    offset: int
    length: int


def write_udif(volume: BinaryIO, size: int, target: Path) -> None:
    """Compress the next size bytes of volume. The same bytes make the same file."""
    if size % SECTOR:
        raise UdifError(f"a volume of {size} bytes is no whole number of sectors")
    runs: list[BlockRun] = []
    volume_crc = data_crc = offset = sector = 0
    with target.open("wb") as out:
        for chunk in _chunks(volume, size):
            volume_crc = zlib.crc32(chunk, volume_crc)
            kind, stored = _compressed(chunk)
            data_crc = zlib.crc32(stored, data_crc)
            out.write(stored)
            runs.append(BlockRun(kind, sector, len(chunk) // SECTOR, offset, len(stored)))
            offset += len(stored)
            sector += len(chunk) // SECTOR
        runs.append(BlockRun(END, sector, 0, offset, 0))
        listing = _property_list(_table(runs, sector, volume_crc))
        out.write(listing)
        forks = (0, 0, offset, 0, 0)
        name = uuid.uuid5(uuid.NAMESPACE_OID, f"{volume_crc:08x}").bytes
        sums = _checksum(data_crc), _checksum(_master(volume_crc))
        head = (b"koly", 4, _TRAILER.size, 1, *forks, 1, 1, name, sums[0])
        out.write(_TRAILER.pack(*head, offset, len(listing), sums[1], VARIANT, sector))


def read_udif(source: Path, target: Path) -> None:
    """Write the volume that source holds. Each of its checksums has to fit."""
    try:
        with source.open("rb") as image, target.open("wb") as out:
            _read(image, out)
    except (struct.error, zlib.error, ExpatError, ValueError, LookupError) as error:
        raise UdifError(f"it is damaged: {error}") from error


def _read(image: BinaryIO, out: BinaryIO) -> None:
    if image.seek(0, os.SEEK_END) < _TRAILER.size:
        raise UdifError("it is shorter than a trailer")
    image.seek(-_TRAILER.size, os.SEEK_END)
    trailer = _TRAILER.unpack(image.read())
    if trailer[0] != b"koly":
        raise UdifError("it has no trailer")
    data_length, data_sum, at, length, master, variant, sectors = (trailer[6], *trailer[12:])
    if variant != VARIANT:
        raise UdifError("it is no single volume")
    image.seek(at)
    (block,) = plistlib.loads(image.read(length))["resource-fork"]["blkx"]
    table = block["Data"]
    image.seek(0)
    if _crc(_chunks(image, data_length)) != _value(data_sum):
        raise UdifError("the checksum of its data does not fit")
    volume_crc = _expand(image, table, out)
    if volume_crc != _value(_TABLE.unpack_from(table)[7]) or _master(volume_crc) != _value(master):
        raise UdifError("the checksum of its volume does not fit")
    if out.tell() != sectors * SECTOR:
        raise UdifError(f"it is said to hold {sectors} sectors and holds {out.tell() // SECTOR}")


def _chunks(source: BinaryIO, size: int) -> Iterator[bytes]:
    left = size
    while left:
        chunk = source.read(min(left, CHUNK_SECTORS * SECTOR))
        if not chunk:
            raise UdifError(f"{left} bytes are missing")
        left -= len(chunk)
        yield chunk


def _compressed(chunk: bytes) -> tuple[int, bytes]:
    packed = zlib.compress(chunk, LEVEL)
    return (ZLIB, packed) if len(packed) < len(chunk) else (RAW, chunk)


def _crc(chunks: Iterator[bytes]) -> int:
    crc = 0
    for chunk in chunks:
        crc = zlib.crc32(chunk, crc)
    return crc


def _master(volume_crc: int) -> int:
    """The checksum of all tables' checksums; there is one."""
    return zlib.crc32(volume_crc.to_bytes(4, "big"))


def _checksum(crc: int) -> bytes:
    return _CHECKSUM.pack(CRC32, 32, crc)


def _value(checksum: bytes) -> int:
    return _CHECKSUM.unpack(checksum)[2]


def _table(runs: list[BlockRun], sectors: int, volume_crc: int) -> bytes:
    # A reader's buffer has to hold the largest chunk; hdiutil asks for eight sectors more.
    head = (b"mish", 1, 0, sectors, 0, CHUNK_SECTORS + 8, WHOLE_DISK)
    body = [_RUN.pack(*astuple(run)) for run in runs]
    return _TABLE.pack(*head, _checksum(volume_crc), len(runs)) + b"".join(body)


def _property_list(table: bytes) -> bytes:
    common = {"Attributes": "0x0050", "ID": "0"}
    blocks = {**common, "CFName": NAME, "Name": NAME, "Data": table}
    forks = {"blkx": [blocks], "plst": [{**common, "Name": "", "Data": _PLST}]}
    return plistlib.dumps({"resource-fork": forks})


def _expand(image: BinaryIO, table: bytes, out: BinaryIO) -> int:
    """Write every chunk, return the checksum of all."""
    crc = 0
    for fields in _RUN.iter_unpack(table[_TABLE.size :]):
        run = BlockRun(*fields)
        if run.kind == END:
            break
        image.seek(run.offset)
        stored = image.read(run.length)
        if run.kind not in (RAW, ZLIB):
            raise UdifError(f"it has chunks of the kind {run.kind:#010x}")
        chunk = zlib.decompress(stored) if run.kind == ZLIB else stored
        if (run.first_sector * SECTOR, run.sectors * SECTOR) != (out.tell(), len(chunk)):
            raise UdifError(f"its chunk at sector {run.first_sector} has the wrong place or size")
        crc = zlib.crc32(chunk, crc)
        out.write(chunk)
    return crc
