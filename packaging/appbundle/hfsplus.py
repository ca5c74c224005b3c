"""Reads the files, symbolic links and folders of an HFS+ volume written by xorriso.

Resource forks, hard links and files with more than eight extents are not supported. The volume
stores names in Unicode form NFD; this module returns them in form NFC. All numbers are big-endian.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from struct import Struct
from typing import BinaryIO, Final

from appbundle.entries import FileEntry

SECTOR: Final = 512
CHUNK: Final = 1 << 20
ROOT: Final = 2  # catalogue number of the root folder
FOLDER: Final = 1  # record kind of a folder in the catalogue
FILE: Final = 2  # record kind of a file in the catalogue

# Fields: signature, number of partitions, first sector, number of sectors, name, kind.
_PARTITION = Struct(">2s2xIII32s32s")
# Fields: size in bytes, then the first block and the number of blocks of each of eight extents.
_FORK = Struct(">Q8x16I")
_NODE = Struct(">I4xbBH2x")  # fields: next leaf, kind, height, number of records
_TREE = Struct(">HIIIIH")  # fields: depth, root, records, first leaf, last leaf, node size in bytes
_KEY = Struct(">HIH")  # fields: key length, parent's number, length of the name in UTF-16 units
_RECORD = Struct(">H6xI30xH")  # fields: kind, number in the catalogue, mode
_FORK_IN_FILE: Final = 88  # offset of the data fork in the record of a file
_FORK_IN_HEADER: Final = 272  # offset of the catalogue's fork in the volume header


class HfsError(Exception):
    """The error if the data is no HFS+ volume, or if it uses unsupported features."""


@dataclass(frozen=True, slots=True)
class Extent:
    """A byte range of an image or volume."""

    start: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HfsNode:
    """A file, link or folder in the catalogue of a volume."""

    number: int  # number in the catalogue
    parent: int  # catalogue number of the folder that contains this node
    name: str
    mode: int
    pieces: tuple[Extent, ...]  # extents of the content; empty for a folder


def find_volume(image: BinaryIO) -> Extent:
    """Return the byte range of the HFS+ partition in a hybrid image (ISO 9660 and HFS+)."""
    sector = partitions = 1
    while sector <= partitions:
        image.seek(sector * SECTOR)
        signature, partitions, first, sectors, _name, kind = _PARTITION.unpack(
            image.read(_PARTITION.size)
        )
        if signature != b"PM":
            break
        if kind.rstrip(b"\0") == b"Apple_HFS":
            return Extent(first * SECTOR, sectors * SECTOR)
        sector += 1
    raise HfsError("there is no HFS+ partition")


def read_volume(volume: BinaryIO) -> Iterator[FileEntry]:
    """Return an iterator over the entries of a volume. A folder precedes its content."""
    volume.seek(1024)
    header = volume.read(SECTOR)
    if header[:2] != b"H+":
        raise HfsError("there is no HFS+ volume")
    block_size = int.from_bytes(header[40:44], "big")
    catalogue = b"".join(_read(volume, _pieces(header, _FORK_IN_HEADER, block_size)))
    children: dict[int, list[HfsNode]] = {}
    for node in _leaves(catalogue, block_size):
        children.setdefault(node.parent, []).append(node)
    return _walk(volume, children, ROOT, PurePosixPath())


def _walk(
    volume: BinaryIO, children: dict[int, list[HfsNode]], folder: int, path: PurePosixPath
) -> Iterator[FileEntry]:
    for node in children.get(folder, []):
        place = path / node.name
        yield FileEntry(
            path=place, mode=node.mode, read=lambda node=node: _read(volume, node.pieces)
        )
        yield from _walk(volume, children, node.number, place)


def _read(volume: BinaryIO, pieces: tuple[Extent, ...]) -> Iterator[bytes]:
    for piece in pieces:
        for done in range(0, piece.size, CHUNK):
            volume.seek(piece.start + done)
            yield volume.read(min(CHUNK, piece.size - done))


def _pieces(record: bytes, at: int, block_size: int) -> tuple[Extent, ...]:
    size, *blocks = _FORK.unpack_from(record, at)
    pieces: list[Extent] = []
    for first, count in zip(blocks[::2], blocks[1::2], strict=True):
        piece = Extent(first * block_size, min(size, count * block_size))
        size -= piece.size
        if piece.size:
            pieces.append(piece)
    if size:
        raise HfsError("a file lies in more than eight pieces")
    return tuple(pieces)


def _leaves(catalogue: bytes, block_size: int) -> Iterator[HfsNode]:
    """Yield every file and folder of the catalogue.

    The catalogue is a B-tree. The header of the tree has the number of the first leaf, and each
    leaf has the number of the next leaf.
    """
    _depth, _root, _records, leaf, _last, node_size = _TREE.unpack_from(catalogue, _NODE.size)
    while leaf:
        node = catalogue[leaf * node_size : (leaf + 1) * node_size]
        leaf, _kind, _height, records = _NODE.unpack_from(node)
        for i in range(1, records + 1):
            at = int.from_bytes(node[node_size - 2 * i : node_size - 2 * i + 2], "big")
            yield from _parse(node[at:], block_size)


def _parse(record: bytes, block_size: int) -> Iterator[HfsNode]:
    key_length, parent, letters = _KEY.unpack_from(record)
    name = record[_KEY.size : _KEY.size + 2 * letters].decode("utf-16-be")
    data = record[2 + key_length :]
    kind, number, mode = _RECORD.unpack_from(data)
    if kind not in (FILE, FOLDER):
        return  # skip a thread record, which only maps a catalogue number to a name
    if "/" in name or name in (".", ".."):
        raise HfsError(f"{name!r} is no name")
    yield HfsNode(
        number=number,
        parent=parent,
        name=unicodedata.normalize("NFC", name),
        mode=mode,
        pieces=_pieces(data, _FORK_IN_FILE, block_size) if kind == FILE else (),
    )
