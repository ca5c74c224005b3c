"""Requests as bytes on a socket, and what came back."""

from __future__ import annotations

import re
import socket
import struct
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum

KEY = "the-right-key"
PATIENCE_S = 30.0
_STATUS = re.compile(rb"(?:^|\n)HTTP/1\.[01] (\d{3}) ")
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close with a reset

Headers = Iterable[tuple[str | bytes, str | bytes]]


class End(StrEnum):
    """The last act of a client, after it has sent everything."""

    READ = "reads the response"
    HALF = "closes its half of the connection, and reads the response"
    GO = "closes the connection"
    RESET = "resets the connection"


@dataclass(frozen=True, slots=True)
class Attack:
    """A hostile request. Without the right key, from a wrong page or host it is not `allowed`."""

    parts: list[bytes]  # sent one by one
    allowed: bool = True
    end: End = End.READ


@dataclass(frozen=True, slots=True)
class Reaction:
    """The responses of a server, and the state of the connection."""

    statuses: list[int] = field(default_factory=list[int])
    received: bytes = b""
    is_late: bool = False  # True if the response did not end in time


def head(method: str, path: str | bytes, headers: Headers, version: str = "HTTP/1.1") -> bytes:
    """Return the head of a request. Nothing is checked."""
    lines = [b"%b %b %b" % (method.encode(), _bytes(path), version.encode())]
    lines += [b"%b: %b" % (_bytes(name), _bytes(value)) for name, value in headers]
    return b"\r\n".join([*lines, b"", b""])


def headers(
    length: int | None = None, key: str = KEY, host: str = "localhost"
) -> list[tuple[str, str]]:
    """Return the headers of an honest request."""
    given = [("host", host), ("connection", "close")]
    if key:
        given.append(("authorization", f"Bearer {key}"))
    if length is not None:
        given += [("content-type", "application/json"), ("content-length", str(length))]
    return given


def post(path: str, body: bytes, *more: tuple[str, str]) -> bytes:
    """Return an honest request with a body."""
    return head("POST", path, [*headers(len(body)), *more]) + body


def send(port: int, attack: Attack) -> Reaction:
    """Send a request and read until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as raw:
        # A server may close a connection before it has read everything.
        with suppress(ConnectionError):
            for part in attack.parts:
                raw.sendall(part)
            if attack.end is End.HALF:
                raw.shutdown(socket.SHUT_WR)
        if attack.end is End.RESET:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        if attack.end in (End.GO, End.RESET):
            return Reaction()
        return _read(raw)


def _read(raw: socket.socket) -> Reaction:
    received, is_late = b"", False
    end = time.monotonic() + PATIENCE_S
    try:
        while not is_late and (part := raw.recv(1 << 16)):
            received += part
            is_late = time.monotonic() > end
    except TimeoutError:
        is_late = True
    except ConnectionError:
        pass
    return Reaction([int(status) for status in _STATUS.findall(received)], received, is_late)


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()
