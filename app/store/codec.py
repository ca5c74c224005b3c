"""JSON encoding and decoding of frozen dataclasses, with a check of types when decoding.

Decoding ignores keys that are not fields of the class, and sets missing fields to their default. A
field can therefore be added or removed without a migration. Supported types: plain values,
StrEnums, optional values, tuples of one type and nested dataclasses.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import asdict, fields, is_dataclass
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, NewType, TypeVar, cast, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

log = logging.getLogger(__name__)

_Read = Callable[[object], object]
_Value = TypeVar("_Value")


def to_json(value: DataclassInstance) -> str:
    return json.dumps(asdict(value), separators=(",", ":"))


def from_json(kind: type[_Value], text: str) -> _Value:
    """Return the dataclass value that `text`, written by to_json, describes.

    Raises:
        ValueError: the text is not JSON, or does not fit the class.
    """
    return from_parsed(kind, json.loads(text))


def from_parsed(kind: type[_Value], value: object) -> _Value:
    """Return the dataclass value that parsed JSON describes.

    Raises:
        ValueError: the JSON does not fit the class.
    """
    return cast("_Value", _reader(kind)(value))


def from_json_or_none(kind: type[_Value], text: str) -> _Value | None:
    """Decode like from_json. If the text is damaged, write a warning to the log and return None.

    Use it for optional data: a conversation can still be opened if the result is None.
    """
    try:
        return from_json(kind, text)
    except ValueError as error:
        log.warning("ignoring a damaged %s in the database: %s", kind.__name__, error)
        return None


@cache
def _reader(hint: object) -> _Read:
    """Return a function that converts parsed JSON to a value of the type `hint`."""
    origin = get_origin(hint)
    if isinstance(hint, NewType):
        return _reader(hint.__supertype__)
    if origin is UnionType:
        return _optional_reader(hint)
    if origin is tuple:
        return _tuple_reader(get_args(hint)[0])
    assert isinstance(hint, type), f"no rule for {hint}"
    if is_dataclass(hint):
        return _dataclass_reader(hint)
    if issubclass(hint, StrEnum):
        return cast("_Read", hint)
    return _plain_reader(cast("type[object]", hint))


def _plain_reader(kind: type[object]) -> _Read:
    def read(value: object) -> object:
        if type(value) is kind:  # isinstance() would accept true as an int
            return value
        if kind is float and type(value) is int:
            try:
                return float(value)
            except OverflowError as error:  # an int of more than 308 digits
                raise ValueError("a number is too large") from error
        raise ValueError(f"{value!r} is not of type {kind.__name__}")

    return read


def _optional_reader(hint: object) -> _Read:
    (kind,) = (arg for arg in get_args(hint) if arg is not NoneType)
    read_some = _reader(kind)
    return lambda value: None if value is None else read_some(value)


def _tuple_reader(kind: object) -> _Read:
    read_item = _reader(kind)
    check = _plain_reader(list)
    return lambda value: tuple(read_item(item) for item in cast("list[object]", check(value)))


def _dataclass_reader(kind: type[DataclassInstance]) -> _Read:
    hints = get_type_hints(kind)
    readers = [(field.name, _reader(hints[field.name])) for field in fields(kind)]
    check = _plain_reader(dict)

    def read(value: object) -> object:
        parsed = cast("dict[str, object]", check(value))
        try:
            return kind(
                **{name: read_it(parsed[name]) for name, read_it in readers if name in parsed}
            )
        except TypeError as error:  # the JSON lacks a field that has no default
            raise ValueError(str(error)) from error

    return read
