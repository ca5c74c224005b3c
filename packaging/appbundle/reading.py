"""Reads files that may be malformed, and reports each fault as a BundleError."""

from __future__ import annotations

import json
import plistlib
import struct
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias, cast
from xml.parsers.expat import ExpatError

Bytes: TypeAlias = bytes | memoryview

# Errors that plistlib and json raise on malformed bytes.
_MALFORMED = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    MemoryError,
    ExpatError,
    struct.error,
)


class BundleError(Exception):
    """The error for a missing or malformed file.

    The message starts with a verb, as in "is truncated". The file's name is put before it, by
    `about` or by the caller.
    """


@contextmanager
def about(name: str) -> Generator[None]:
    """Put `name` before the message of a BundleError that the block raises."""
    try:
        yield
    except BundleError as error:
        raise BundleError(f"{name} {error}") from error


def unpack(layout: str, data: Bytes, offset: int, what: str) -> tuple[int, ...]:
    """Return the numbers at offset. `layout` is a format of the struct module.

    Raises:
        BundleError: data ends too early; the message names the part `what`.
    """
    try:
        return struct.unpack_from(layout, data, offset)
    except struct.error:
        raise BundleError(f"is truncated: it ends inside its {what}") from None


def span(data: Bytes, offset: int, size: int, what: str) -> Bytes:
    """Return the bytes from offset to offset + size.

    Raises:
        BundleError: data ends too early; the message names the part `what`.
    """
    if size < 0 or offset + size > len(data):
        raise BundleError(f"is truncated: it ends inside its {what}")
    return data[offset : offset + size]


def text(data: Bytes, what: str) -> str:
    """Return the text before the first zero byte.

    Raises:
        BundleError: the text is not UTF-8.
    """
    try:
        return bytes(data).split(b"\0", 1)[0].decode()
    except UnicodeDecodeError:
        raise BundleError(f"is malformed: its {what} is not UTF-8") from None


def read_bytes(path: Path) -> bytes:
    """Return the content of a file.

    Raises:
        BundleError: the file is missing or unreadable.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise BundleError(f"can't be read: {error.strerror}") from error


def read_plist(path: Path) -> Mapping[str, object]:
    """Return the dictionary in a property list file.

    Raises:
        BundleError: the file is unreadable, or no property list with a dictionary at its top.
    """
    return parse_plist(read_bytes(path))


def parse_plist(data: Bytes) -> Mapping[str, object]:
    """Return the dictionary in the bytes of a property list.

    Raises:
        BundleError: the bytes are no property list with a dictionary at its top.
    """
    try:
        return mapping(plistlib.loads(bytes(data)))
    except _MALFORMED:
        raise BundleError("is no property list") from None


def parse_json(data: Bytes) -> Mapping[str, object]:
    """Return the JSON object in these bytes as a dictionary.

    Raises:
        BundleError: the bytes are no JSON object.
    """
    try:
        return mapping(json.loads(bytes(data)))
    except _MALFORMED:
        raise BundleError("is no JSON object") from None


def mapping(value: object) -> Mapping[str, object]:
    """Return value as a dictionary whose keys are strings.

    Raises:
        BundleError: the value is no dictionary.
    """
    if not isinstance(value, dict):
        raise BundleError("is not a dictionary where one belongs")
    return {str(key): item for key, item in cast("dict[object, object]", value).items()}


def strings(value: object) -> tuple[str, ...]:
    """Return the strings in a list; an empty tuple if the value is no list."""
    return tuple(item for item in sequence(value) if isinstance(item, str))


def sequence(value: object) -> list[object]:
    """Return the items of a list; an empty list if the value is no list."""
    return cast("list[object]", value) if isinstance(value, list) else []
