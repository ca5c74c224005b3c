"""Writes a raw volume as a compressed disk image (.dmg: UDIF with zlib), and reads such images.

    chunks | property list with the block table ("mish") | trailer ("koly")

There is one table for the whole disk, as in an image made by `hdiutil create -layout NONE`. The
field `variant` of the image must be 2. With variant 1, hdiutil would look for a partition map and,
according to reports, refuse the image. Chunks of zeros are compressed like other chunks. The
format's zero-fill chunks are not used, because the table's checksum would leave them out.

All numbers are big-endian.
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
LEVEL: Final = 6  # zlib compression level

RAW: Final = 0x00000001  # kind of a BlockRun: the chunk is not compressed
ZLIB: Final = 0x80000005  # kind of a BlockRun: the chunk is compressed with zlib
END: Final = 0xFFFFFFFF  # kind of the last BlockRun, which has no sectors
WHOLE_DISK: Final = 0xFFFFFFFE  # descriptor of a table for the whole disk
VARIANT: Final = 2  # variant of the image: one table, no partition map
CRC32: Final = 2  # checksum kind: CRC-32

# Fields: kind, first sector, number of sectors, offset and length in the image file.
_RUN = Struct(">I4x4Q")
# Fields: signature, version, first sector, number of sectors, data offset, buffer size in sectors,
# descriptor, checksum, number of runs.
_TABLE = Struct(">4sI3QII24x136sI")
_CHECKSUM = Struct(">III124x")  # fields: kind, number of bits, value
# Fields: signature, version, trailer size, flags, running offset, data offset, data length, offset
# and length of resources, segment, number of segments, segment name, data checksum, offset and
# length of the property list, checksum of the tables, variant, number of sectors.
_TRAILER = Struct(">4sIII5QII16s136s2Q120x136sIQ12x")
NAME: Final = "whole disk (Apple_HFS : 0)"
# Content of the entry "plst", which hdiutil writes beside each table.
_PLST: Final = bytes(517) + b"\1\0\1" + bytes(512)


class UdifError(Exception):
    """The error if a disk image is damaged or has an unsupported format."""


@dataclass(frozen=True, slots=True)
class BlockRun:
    """A run of sectors, and the position of its chunk in the image file."""

    kind: int  # RAW, ZLIB or END
    first_sector: int
    sectors: int
    offset: int  # offset of the chunk in the image file
    length: int  # number of bytes of the chunk in the image file


def write_udif(volume: BinaryIO, size: int, target: Path) -> None:
    """Write a disk image with the next `size` bytes of `volume`. Equal bytes give equal images."""
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
    """Extract the volume from a disk image and write the volume to the file `target`.

    Raises:
        UdifError: the image is damaged, has an unsupported format, or has a wrong checksum.
    """
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
    """Return the checksum of the image, computed from the checksum of its only table."""
    return zlib.crc32(volume_crc.to_bytes(4, "big"))


def _checksum(crc: int) -> bytes:
    return _CHECKSUM.pack(CRC32, 32, crc)


def _value(checksum: bytes) -> int:
    return _CHECKSUM.unpack(checksum)[2]


def _table(runs: list[BlockRun], sectors: int, volume_crc: int) -> bytes:
    # Tell readers to use a buffer of the largest chunk plus eight sectors, as hdiutil does.
    head = (b"mish", 1, 0, sectors, 0, CHUNK_SECTORS + 8, WHOLE_DISK)
    body = [_RUN.pack(*astuple(run)) for run in runs]
    return _TABLE.pack(*head, _checksum(volume_crc), len(runs)) + b"".join(body)


def _property_list(table: bytes) -> bytes:
    common = {"Attributes": "0x0050", "ID": "0"}
    blocks = {**common, "CFName": NAME, "Name": NAME, "Data": table}
    forks = {"blkx": [blocks], "plst": [{**common, "Name": "", "Data": _PLST}]}
    return plistlib.dumps({"resource-fork": forks})


def _expand(image: BinaryIO, table: bytes, out: BinaryIO) -> int:
    """Decompress all chunks of an image to `out`. Return the checksum of the volume."""
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
