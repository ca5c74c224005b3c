"""Commands and events as JSON, for the socket between the app and the stage of rank 0.

The values are frozen dataclasses of plain fields (engine/events.py). Each becomes an object with
the name of its class and its fields, and decoding follows the types of the fields. Unlike pickle,
JSON cannot make any other object, so a damaged stream can only fail.
"""

from __future__ import annotations

import base64
import binascii
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, NewType, Union, cast, get_args, get_origin, get_type_hints

from engine.worker.frames import Frame, read_frame

_CLASS = "class"  # key of the name of a dataclass


class WireError(ValueError):
    """A received value does not have the expected type."""


def encode(value: object) -> Any:
    """Return a value as JSON values: numbers, texts, lists and dicts."""
    match value:
        case Enum():
            return value.value
        case bytes():
            return base64.b64encode(value).decode()
        case Path():
            return str(value)
        case tuple() | frozenset():
            return [encode(one) for one in cast("tuple[object, ...]", value)]
        case None | bool() | int() | float() | str():
            return value
        case _:
            assert is_dataclass(value), type(value)
            named = {field.name: encode(getattr(value, field.name)) for field in fields(value)}
            return {_CLASS: type(value).__name__, **named}


def decode(hint: Any, value: Any) -> Any:
    """Return the value of a type that `encode` made JSON values of.

    Args:
        hint: the type, which may be a union.
        value: the JSON values.

    Raises:
        WireError: the JSON values do not fit the type.
    """
    try:
        return _decoder(hint)(value)
    except (KeyError, TypeError, ValueError, AttributeError, binascii.Error) as error:
        raise WireError(f"not a {hint}: {error}") from error


@cache
def _decoder(hint: Any) -> Callable[[Any], Any]:
    if isinstance(hint, NewType):
        return _decoder(hint.__supertype__)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _union_decoder(arguments)
    if origin is not None:
        return _items_decoder(origin, arguments[0])
    return _class_decoder(hint) if is_dataclass(hint) else _plain_decoder(hint)


def _items_decoder(origin: Any, item: Any) -> Callable[[Any], Any]:
    items = _decoder(item)
    if origin is tuple:
        return lambda value: tuple([items(one) for one in value])
    assert origin is frozenset
    return lambda value: frozenset([items(one) for one in value])


def _plain_decoder(hint: Any) -> Callable[[Any], Any]:
    if hint is bytes:
        return lambda value: base64.b64decode(value, validate=True)
    if hint is float or issubclass(hint, Enum | Path):
        return hint
    return lambda value: _checked(hint, value)


def _checked(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise WireError(f"{type(value).__name__} instead of {kind.__name__}")
    return value


def _union_decoder(kinds: tuple[Any, ...]) -> Callable[[Any], Any]:
    others = [kind for kind in kinds if kind is not NoneType]
    if len(others) == 1:
        inner = _decoder(others[0])
        return lambda value: None if value is None else inner(value)
    plain = {kind for kind in kinds if not is_dataclass(kind)}
    classes = {kind.__name__: _decoder(kind) for kind in kinds if kind not in plain}
    # At most one of the kinds is a tuple.
    items = next((_decoder(kind) for kind in kinds if get_origin(kind) is tuple), None)

    def of(value: Any) -> Any:
        if type(value) in plain:
            return value
        return items(value) if items and type(value) is list else classes[value[_CLASS]](value)

    return of


def _class_decoder(kind: Any) -> Callable[[Any], Any]:
    hints = get_type_hints(kind)
    decoders = {field.name: _decoder(hints[field.name]) for field in fields(kind)}

    def of(value: Any) -> Any:
        if value[_CLASS] != kind.__name__:
            raise WireError(f"{value[_CLASS]} instead of {kind.__name__}")
        return kind(**{name: make(value[name]) for name, make in decoders.items()})

    return of


class StageSocket:
    """One end of the socket. One thread may send and another one may receive.

    Args:
        connection: one end of a socket pair. No other process can connect to it, because it has no
            address.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._input = connection.makefile("rb")

    def send(self, value: object) -> None:
        """Send a frozen value.

        Raises:
            OSError: the process at the other end has ended.
        """
        self._connection.sendall(Frame({"value": encode(value)}).packed())

    def receive(self, hint: Any) -> Any:
        """Return the next value, of the type `hint`, or None when the other process has ended.

        Raises:
            WireError: the received value has another type.
        """
        try:
            frame = read_frame(self._input.read)
        except OSError:
            return None
        return None if frame is None else decode(hint, frame.header["value"])

    def close(self) -> None:
        """Close this end. Only the thread that receives may call this method."""
        with suppress(OSError):  # the other process closed its end
            self._connection.shutdown(socket.SHUT_RDWR)
        self._input.close()
        self._connection.close()
