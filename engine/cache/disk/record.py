"""Records: cached state in one file each. Written atomically, read only if every bit is right.

A record is a safetensors file. Its kinds:

    kv      the K/V of the tokens [start, end) of a path, one tensor per array
    state   the auxiliary state (a snapshot) after exactly `start` tokens
    logits  the logits after exactly `start` tokens

The name of a record is its address: a hash of everything that identifies its content. These are the
namespace, the kind, the record before it on the path, the position, the token ids and the forward
passes that computed them. Because the address of the record before it is part of it, an address
identifies a whole path from token 0. A state or a logits record follows the K/V record that
contains its last token.

    8 bytes   length of the header
    header    JSON: name, type, shape and place of each tensor; "__metadata__" with the fields of
              RecordKey, the notes of the writer, and a checksum
    data      tensor "tokens", tensor "feeds", then the tensors of the state

The checksum (CRC-32) covers the header, with zeros in the place of the checksum, and the data. A
record that is cut, changed, renamed, or written for another namespace or format raises RecordError.
A cryptographic hash would protect no better against damage, and reads took 1.4 times as long with
one. Nothing in a record is executed, and its sizes are compared with the size of the file before
memory is taken.

No mlx: a tensor is bytes with the name of a type. Any thread may call these functions.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, cast

from engine.cache.disk.run_bytes import FEED_BYTES, feed_bytes, run_of, token_bytes
from engine.cache.radix import TokenRun

SUFFIX = ".safetensors"
PART_SUFFIX = ".part"  # a record that is being written, or whose writing was interrupted

_FORMAT = "rejoinder-2"
# Largest header in bytes. A header takes about 150 bytes per tensor.
_MAX_HEADER = 1 << 20
# Largest number of token ids in one record. Bounds the memory that reading a header takes.
MAX_TOKENS = 1 << 17
_NO_CHECKSUM = "0" * 8
_TOKENS, _FEEDS = "tokens", "feeds"

# Bytes per item of the types that records use, by their names in safetensors.
ITEM_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "U16": 2, "I16": 2, "F16": 2, "BF16": 2,
    "U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8, "C64": 8,
}  # fmt: skip


class RecordError(Exception):
    """A file is not the record that its name promises. Callers treat it as missing."""


class RecordKind(StrEnum):
    """The kinds of records."""

    KV = "kv"
    STATE = "state"
    LOGITS = "logits"


@dataclass(frozen=True, slots=True)
class RecordKey:
    """Everything that identifies the content of a record."""

    namespace: str  # model, quantisation, K/V bits, MLX version and device
    kind: RecordKind
    parent: str  # address of the K/V record before this one; "" for the first record of a path
    # The tokens of a K/V record. In another record no tokens, and `start` is the position.
    run: TokenRun

    @property
    def address(self) -> str:
        """A hash of all fields, as 64 hexadecimal digits."""
        fixed = json.dumps([_FORMAT, self.namespace, self.kind, self.parent, self.run.start])
        digest = hashlib.sha256(fixed.encode() + b"\n")
        digest.update(token_bytes(self.run.token_ids))
        digest.update(b"|")
        digest.update(feed_bytes(self.run))
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class StoredArray:
    """An array as bytes, in row-major order."""

    dtype: str  # a name of ITEM_BYTES
    shape: tuple[int, ...]
    data: memoryview

    @property
    def nbytes(self) -> int:
        return _size_of(self.dtype, self.shape)


@dataclass(frozen=True, slots=True)
class Header:
    """Identity, notes and size of a record. Its checksum is not verified yet."""

    key: RecordKey
    notes: Mapping[str, str]
    nbytes: int  # size of the file


@dataclass(frozen=True, slots=True)
class Record:
    """A record that was read completely and verified."""

    header: Header
    tensors: Mapping[str, StoredArray]


def write_record(
    folder: Path, key: RecordKey, notes: Mapping[str, str], tensors: Mapping[str, StoredArray]
) -> int:
    """Write a record under its address, readable by this user only. Return its size in bytes.

    The file is written under another name, flushed and renamed. An interrupted call leaves at most
    a file with PART_SUFFIX.

    Args:
        folder: an existing folder.
        key: the identity of the record.
        notes: values of the writer that do not identify the record.
        tensors: the state. Their data must not change during the call.

    Raises:
        OSError: the record could not be written, for example because the disk is full.
    """
    tokens, feeds = token_bytes(key.run.token_ids), feed_bytes(key.run)
    every = {
        _TOKENS: StoredArray("U32", (len(tokens) // 4,), memoryview(tokens)),
        _FEEDS: StoredArray("I64", (len(feeds) // FEED_BYTES, 3), memoryview(feeds)),
        **tensors,
    }
    header = _header_text(key, notes, every).encode()
    checksum = zlib.crc32(header)
    for tensor in every.values():
        checksum = zlib.crc32(tensor.data, checksum)
    header = header.replace(_NO_CHECKSUM.encode(), f"{checksum:08x}".encode(), 1)
    path = folder / (key.address + SUFFIX)
    part = path.with_suffix(PART_SUFFIX)
    opened = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(opened, "wb", buffering=0) as file:
            _write_all(file, len(header).to_bytes(8, "little") + header)
            for tensor in every.values():
                _write_all(file, tensor.data)
            os.fsync(file.fileno())
            nbytes = file.tell()
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return nbytes


def read_header(path: Path, namespace: str) -> Header:
    """Read the identity and the notes of a record. Its state is neither read nor verified.

    Raises:
        RecordError: the file is no record of this namespace and format, or is not named after its
            content.
        OSError: the file cannot be read.
    """
    with _open(path) as file:
        return _read_start(path, namespace, file)[0]


def read_record(path: Path, namespace: str) -> Record:
    """Read a record and verify its checksum.

    Raises:
        RecordError: the file is not exactly the record that was written under this name.
        OSError: the file cannot be read.
    """
    with _open(path) as file:
        header, text, table, data_start = _read_start(path, namespace, file)
        stated = _checksum_in(table)
        file.seek(data_start)
        data = memoryview(_read(file, header.nbytes - data_start))
    checksum = zlib.crc32(data, zlib.crc32(text.replace(stated, _NO_CHECKSUM.encode(), 1)))
    if f"{checksum:08x}".encode() != stated:
        raise RecordError("the checksum is wrong")
    tensors = {
        name: StoredArray(dtype, shape, data[first:last])
        for name, (dtype, shape, first, last) in _places(table, len(data)).items()
        if name not in (_TOKENS, _FEEDS)
    }
    return Record(header, tensors)


def _checksum_in(table: Mapping[str, object]) -> bytes:
    metadata = table["__metadata__"]
    fields = cast("dict[str, object]", metadata) if isinstance(metadata, dict) else {}
    checksum = str(fields.get("checksum", "")).encode()
    if len(checksum) != len(_NO_CHECKSUM):
        raise RecordError("there is no checksum")
    return checksum


def _header_text(
    key: RecordKey, notes: Mapping[str, str], tensors: Mapping[str, StoredArray]
) -> str:
    metadata = {
        # First, so that only the checksum itself can be the first text that looks like it.
        "checksum": _NO_CHECKSUM,
        "format": _FORMAT,
        "namespace": key.namespace,
        "kind": key.kind.value,
        "parent": key.parent,
        "start": str(key.run.start),
        "notes": json.dumps(dict(notes)),
    }
    table: dict[str, object] = {"__metadata__": metadata}
    end = 0
    for name, tensor in tensors.items():
        assert tensor.nbytes == tensor.data.nbytes
        place = [end, end + tensor.nbytes]
        table[name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": place}
        end += tensor.nbytes
    text = json.dumps(table)
    return text + " " * (-len(text.encode()) % 8)


def _open(path: Path) -> BinaryIO:
    # A record is a regular file. O_NONBLOCK: opening a named pipe must not wait for a writer.
    opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        _check_regular(opened)
        return os.fdopen(opened, "rb")
    except BaseException:
        os.close(opened)
        raise


def _check_regular(opened: int) -> None:
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        raise RecordError("the file is not a regular file")


def _read_start(
    path: Path, namespace: str, file: BinaryIO
) -> tuple[Header, bytes, dict[str, object], int]:
    """Read the header, the tokens and the passes. Return also the header's text and its end."""
    nbytes = os.fstat(file.fileno()).st_size
    length = int.from_bytes(_read(file, 8), "little")
    if not 0 < length <= min(_MAX_HEADER, nbytes - 8):
        raise RecordError("the header is too long")
    text = _read(file, length)
    table = _parsed(text)
    metadata = table.get("__metadata__")
    if not isinstance(metadata, dict):
        raise RecordError("there is no metadata")
    fields = cast("dict[str, object]", metadata)
    if fields.get("format") != _FORMAT or fields.get("namespace") != namespace:
        raise RecordError("the record belongs to another version or model")
    data_start = 8 + length
    places = _places(table, nbytes - data_start)
    start, parent, notes = _fields_of(fields)
    tokens = _leading(file, places, _TOKENS, 4 * MAX_TOKENS)
    feeds = _leading(file, places, _FEEDS, FEED_BYTES * MAX_TOKENS)
    try:
        kind = RecordKind(str(fields.get("kind")))
        key = RecordKey(namespace, kind, parent, run_of(tokens, feeds, start))
    except (ValueError, OverflowError) as error:
        raise RecordError("the metadata are invalid") from error
    if key.address + SUFFIX != path.name:
        raise RecordError("the file has the name of another record")
    return Header(key, notes, nbytes), text, table, data_start


def _fields_of(fields: Mapping[str, object]) -> tuple[int, str, dict[str, str]]:
    start, parent, notes = fields.get("start"), fields.get("parent"), fields.get("notes")
    if not (isinstance(start, str) and isinstance(parent, str) and isinstance(notes, str)):
        raise RecordError("the metadata are incomplete")
    if len(start) > 18 or not start.isdecimal():
        raise RecordError("the position is invalid")
    values = _parsed(notes.encode())
    return int(start), parent, {key: str(value) for key, value in values.items()}


def _parsed(text: bytes) -> dict[str, object]:
    try:
        parsed: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordError("the header is not JSON") from error
    if not isinstance(parsed, dict):
        raise RecordError("the header is not a table")
    return cast("dict[str, object]", parsed)


_Place = tuple[str, tuple[int, ...], int, int]


def _places(table: Mapping[str, object], data_bytes: int) -> dict[str, _Place]:
    """Return type, shape, first and last byte of each tensor. Together they cover all data once."""
    places: dict[str, _Place] = {}
    end = 0
    for name, described in table.items():
        if name == "__metadata__":
            continue
        if not isinstance(described, dict):
            raise RecordError("a tensor has no description")
        entry = cast("dict[str, object]", described)
        dtype, shape, place = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
        if not (_are_sizes(shape) and _are_sizes(place) and isinstance(dtype, str)):
            raise RecordError("a tensor is described wrongly")
        sizes, ends = tuple(cast("list[int]", shape)), cast("list[int]", place)
        if dtype not in ITEM_BYTES or len(sizes) > 8 or len(ends) != 2:
            raise RecordError("a tensor is of an unknown kind")
        if ends != [end, end + _size_of(dtype, sizes)]:
            raise RecordError("a tensor does not fit its place")
        end = ends[1]
        places[name] = (dtype, sizes, ends[0], ends[1])
    if end != data_bytes:
        raise RecordError("the file does not end with its last tensor")
    return places


def _are_sizes(values: object) -> bool:
    return isinstance(values, list) and all(
        type(value) is int and 0 <= value < 1 << 48 for value in cast("list[object]", values)
    )


def _size_of(dtype: str, shape: Sequence[int]) -> int:
    size = ITEM_BYTES[dtype]
    for length in shape:
        size *= length
    return size


def _leading(file: BinaryIO, places: Mapping[str, _Place], name: str, limit: int) -> bytes:
    if name not in places or list(places).index(name) != [_TOKENS, _FEEDS].index(name):
        raise RecordError("the tokens are missing")
    _, _, first, last = places[name]
    if last - first > limit:
        raise RecordError("there are too many tokens")
    return _read(file, last - first)


def _read(file: BinaryIO, num_bytes: int) -> bytes:
    data = file.read(num_bytes)
    if len(data) != num_bytes:
        raise RecordError("the file is cut")
    return data


def _write_all(file: BinaryIO, data: bytes | memoryview) -> None:
    view = memoryview(data)
    view = view.cast("B") if view.nbytes else memoryview(b"")
    while view:
        view = view[file.write(view) :]
