"""Reads files that may hold anything. Whatever is wrong with one becomes a BundleError."""

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

# What plistlib and json are known to raise when the bytes are not theirs.
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
    """Something is not what it should be. The message goes on after the thing's name: "is …"."""


@contextmanager
def about(name: str) -> Generator[None]:
    """Puts the thing's name before what is wrong with it."""
    try:
        yield
    except BundleError as error:
        raise BundleError(f"{name} {error}") from error


def unpack(layout: str, data: Bytes, offset: int, what: str) -> tuple[int, ...]:
    """The numbers at offset.

    Raises:
        BundleError: data ends before they do.
    """
    try:
        return struct.unpack_from(layout, data, offset)
    except struct.error:
        raise BundleError(f"is truncated: it ends inside its {what}") from None


def span(data: Bytes, offset: int, size: int, what: str) -> Bytes:
    """The bytes from offset to offset + size.

    Raises:
        BundleError: they are not all there.
    """
    if size < 0 or offset + size > len(data):
        raise BundleError(f"is truncated: it ends inside its {what}")
    return data[offset : offset + size]


def text(data: Bytes, what: str) -> str:
    """What is before the first zero byte.

    Raises:
        BundleError: it is not UTF-8.
    """
    try:
        return bytes(data).split(b"\0", 1)[0].decode()
    except UnicodeDecodeError:
        raise BundleError(f"is malformed: its {what} is not UTF-8") from None


def read_bytes(path: Path) -> bytes:
    """A file's bytes.

    Raises:
        BundleError: there is no such file, or it can't be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise BundleError(f"can't be read: {error.strerror}") from error


def read_plist(path: Path) -> Mapping[str, object]:
    """A property list whose top is a dictionary.

    Raises:
        BundleError: it is something else.
    """
    return parse_plist(read_bytes(path))


def parse_plist(data: Bytes) -> Mapping[str, object]:
    """A property list whose top is a dictionary.

    Raises:
        BundleError: it is something else.
    """
    try:
        return mapping(plistlib.loads(bytes(data)))
    except _MALFORMED:
        raise BundleError("is no property list") from None


def parse_json(data: Bytes) -> Mapping[str, object]:
    """A JSON object.

    Raises:
        BundleError: it is something else.
    """
    try:
        return mapping(json.loads(bytes(data)))
    except _MALFORMED:
        raise BundleError("is no JSON object") from None


def mapping(value: object) -> Mapping[str, object]:
    """The value, if it is a dictionary.

    Raises:
        BundleError: it is something else.
    """
    if not isinstance(value, dict):
        raise BundleError("is not a dictionary where one belongs")
    return {str(key): item for key, item in cast("dict[object, object]", value).items()}


def strings(value: object) -> tuple[str, ...]:
    """The strings of a list; none if it is something else."""
    return tuple(item for item in sequence(value) if isinstance(item, str))


def sequence(value: object) -> list[object]:
    """The items of a list; none if it is something else."""
    return cast("list[object]", value) if isinstance(value, list) else []
