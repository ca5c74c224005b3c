"""Parse the header of a GGUF file: its metadata, and the names, shapes and places of tensors."""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from engine.errors import GgufError

Value = bool | int | float | str | list[str] | list[int] | list[float] | list[bool]


_STRING: Final = 8
_ARRAY: Final = 9
_BOOL: Final = 7
_FORMATS: Final[Mapping[int, str]] = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", _BOOL: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip
_MAX_DIMENSIONS: Final = 4
_MAX_NAME_LEN: Final = 200
_VERSIONS: Final = (2, 3)


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata of a GGUF file, with one method for each type of value.

    Each method raises GgufError if the value has another type. It also raises GgufError if the
    value is missing and the caller gives no default.
    """

    values: Mapping[str, Value]

    def integer(self, key: str, default: int | None = None) -> int:
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise wrong(key, "a whole number")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        value = self.values.get(key, default)
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            raise wrong(key, "a number")
        return float(value)

    def text(self, key: str, default: str | None = None) -> str:
        value = self.values.get(key, default)
        if not isinstance(value, str):
            raise wrong(key, "a text")
        return value

    def texts(self, key: str) -> list[str]:
        value = self.values.get(key)
        if isinstance(value, list):
            texts = [item for item in value if isinstance(item, str)]
            if len(texts) == len(value):
                return texts
        raise wrong(key, "a list of texts")

    def integers(self, key: str) -> list[int]:
        value = self.values.get(key)
        if isinstance(value, list):
            integers = [item for item in value if isinstance(item, int)]
            if len(integers) == len(value):
                return integers
        raise wrong(key, "a list of whole numbers")

    def numbers(self, key: str) -> list[float]:
        value = self.values.get(key)
        if isinstance(value, list):
            numbers = [item for item in value if isinstance(item, float) and math.isfinite(item)]
            if len(numbers) == len(value):
                return numbers
        raise wrong(key, "a list of numbers")


class _TruncatedError(GgufError):
    """A file ends inside its header."""


class Cursor:
    """A reader of consecutive values from a file's header.

    A read past the end of the file raises an error: the file is truncated.
    """

    def __init__(self, content: mmap.mmap | bytes, file_name: str) -> None:
        self.content = content
        self.position = 0
        self._file_name = file_name

    def read_bytes(self, num_bytes: int) -> bytes:
        end = self.position + num_bytes
        if end > len(self.content):
            raise _TruncatedError(
                f"{self._file_name} is truncated: "
                f"its header ends after {len(self.content):,} bytes."
            )
        taken = self.content[self.position : end]
        self.position = end
        return taken

    def integer(self, format_: str) -> int:
        return int.from_bytes(self.read_bytes(struct.calcsize("<" + format_)), "little")

    def text(self) -> str:
        return self.read_bytes(self.integer("Q")).decode("utf-8", errors="replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorEntry:
    """A tensor as the header lists it."""

    name: str
    dimensions: tuple[int, ...]  # sizes of the dimensions in the order of the file: columns first
    kind_id: int  # number of the tensor's format: a key of BLOCKS
    offset: int  # position in bytes, counted from the start of the tensor data


def _bounded(cursor: Cursor, count: int) -> int:
    """Return a count of items from the header, but at most the file's size in bytes.

    Each item takes at least one byte, so a larger count can only come from a broken file. Reading
    the items of such a file raises the error for a truncated file.
    """
    return min(count, len(cursor.content))


def _read_values(cursor: Cursor, count: int) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for _ in range(_bounded(cursor, count)):
        key = cursor.text()
        values[key] = _read_value(cursor, key, cursor.integer("I"))
    return values


def _read_value(cursor: Cursor, key: str, type_id: int) -> Value:
    if type_id == _ARRAY:
        return _read_list(cursor, key, cursor.integer("I"), cursor.integer("Q"))
    if type_id == _STRING:
        return cursor.text()
    return _read_numbers(cursor, key, type_id, 1)[0]


def _read_list(cursor: Cursor, key: str, type_id: int, count: int) -> Value:
    if type_id == _STRING:
        return [cursor.text() for _ in range(_bounded(cursor, count))]
    return _read_numbers(cursor, key, type_id, count)


def _read_numbers(
    cursor: Cursor, key: str, type_id: int, count: int
) -> list[int] | list[float] | list[bool]:
    if type_id not in _FORMATS:
        raise GgufError(f"The metadata value {key[:60]!r} is of the unknown type {type_id}.")
    code = _FORMATS[type_id]
    raw = cursor.read_bytes(count * struct.calcsize("<" + code))
    if type_id == _BOOL:
        return [byte != 0 for byte in raw]
    return np.frombuffer(raw, np.dtype("<" + code)).tolist()


def _read_entry(cursor: Cursor) -> TensorEntry:
    name = cursor.text()
    if len(name) > _MAX_NAME_LEN:
        raise GgufError(f"A tensor has a name of {len(name):,} characters.")
    num_dimensions = cursor.integer("I")
    if not 1 <= num_dimensions <= _MAX_DIMENSIONS:
        raise GgufError(f"The tensor {name} has {num_dimensions} dimensions; 1 to 4 are possible.")
    dimensions = tuple(cursor.integer("Q") for _ in range(num_dimensions))
    return TensorEntry(
        name=name, dimensions=dimensions, kind_id=cursor.integer("I"), offset=cursor.integer("Q")
    )


def header_len(content: bytes, file_name: str) -> int | None:
    """Return the bytes of the header with which content begins, or None if more bytes are needed.

    Raises:
        GgufError: the header is broken.
    """
    cursor = Cursor(content, file_name)
    try:
        read_header(cursor, file_name)
    except _TruncatedError:
        return None
    return cursor.position


def read_header(cursor: Cursor, file_name: str) -> tuple[Metadata, list[TensorEntry]]:
    """Read a header from its start. Raise GgufError if it is broken or truncated."""
    if cursor.read_bytes(4) != b"GGUF":
        raise GgufError(f"{file_name} is not a GGUF file.")
    version = cursor.integer("I")
    if version not in _VERSIONS:
        raise GgufError(
            f"{file_name} is a GGUF file of version {version}; versions 2 and 3 can be read."
        )
    num_tensors, num_values = cursor.integer("Q"), cursor.integer("Q")
    metadata = Metadata(_read_values(cursor, num_values))
    return metadata, [_read_entry(cursor) for _ in range(_bounded(cursor, num_tensors))]


def wrong(key: str, wanted: str) -> GgufError:
    """Return the error of a metadata value that is not as wanted."""
    return GgufError(f"The metadata value {key!r} is missing or not {wanted}.")
