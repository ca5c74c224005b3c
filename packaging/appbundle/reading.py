"""Reads files that may be missing or malformed. Each fault raises a BundleError."""

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

    The message begins with a verb, as in "is truncated". about() or the caller adds the file's name
    in front.
    """


@contextmanager
def about(name: str) -> Generator[None]:
    """Add `name` to the start of the message if the `with` block raises a BundleError."""
    try:
        yield
    except BundleError as error:
        raise BundleError(f"{name} {error}") from error


def unpack(layout: str, data: Bytes, offset: int, what: str) -> tuple[int, ...]:
    """Unpack numbers at an offset. `layout` is a format string of the struct module.

    Raises:
        BundleError: the data ends too early. `what` names the unpacked part in the message.
    """
    try:
        return struct.unpack_from(layout, data, offset)
    except struct.error:
        raise BundleError(f"is truncated: it ends inside its {what}") from None


def span(data: Bytes, offset: int, size: int, what: str) -> Bytes:
    """Return the bytes from offset to offset + size.

    Raises:
        BundleError: the data ends too early. `what` names these bytes in the message.
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
        BundleError: the file is unreadable, or is no property list with a dictionary at the top.
    """
    return parse_plist(read_bytes(path))


def parse_plist(data: Bytes) -> Mapping[str, object]:
    """Parse the bytes of a property list and return its dictionary.

    Raises:
        BundleError: the bytes are no property list with a dictionary at the top.
    """
    try:
        return mapping(plistlib.loads(bytes(data)))
    except _MALFORMED:
        raise BundleError("is no property list") from None


def parse_json(data: Bytes) -> Mapping[str, object]:
    """Parse a JSON object and return it as a dictionary.

    Raises:
        BundleError: the data is no JSON object.
    """
    try:
        return mapping(json.loads(bytes(data)))
    except _MALFORMED:
        raise BundleError("is no JSON object") from None


def mapping(value: object) -> Mapping[str, object]:
    """Return the value as a dictionary. Convert its keys to strings.

    Raises:
        BundleError: the value is no dictionary.
    """
    if not isinstance(value, dict):
        raise BundleError("is not a dictionary where one belongs")
    return {str(key): item for key, item in cast("dict[object, object]", value).items()}


def strings(value: object) -> tuple[str, ...]:
    """Return the strings in a list. If the value is no list, return an empty tuple."""
    return tuple(item for item in sequence(value) if isinstance(item, str))


def sequence(value: object) -> list[object]:
    """Return the items of a list. If the value is no list, return an empty list."""
    return cast("list[object]", value) if isinstance(value, list) else []
