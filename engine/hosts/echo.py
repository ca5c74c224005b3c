"""The round trip and the speed of the link between two hosts, measured over one TCP connection.

A stage listens on one of its addresses for a few seconds, accepts one connection that begins with
the expected secret, and sends back what it receives. It counts what follows the secret's echoes:
single bytes come back at once, and the end of a long block is confirmed by one byte.
"""

from __future__ import annotations

import hmac
import socket
import statistics
import time
from contextlib import suppress
from dataclasses import dataclass

SECRET_BYTES = 16
LIMIT_S = 5.0  # for the connection, and for each answer
_PINGS = 20
_BLOCK = 4 << 20  # bytes: the hidden state of a cell of 512 tokens
_BYTE = b"\0"


@dataclass(frozen=True, slots=True)
class MeasuredLink:
    """The measured link from this machine to an address of a host."""

    own_address: str  # the address of this machine on the link
    round_trip_ms: float
    bytes_per_s: float


def listen(ip: str) -> socket.socket:
    """Return a socket that listens on a free port of an address of this machine.

    Raises:
        OSError: the address does not belong to this machine.
    """
    listener = socket.socket(socket.AF_INET6 if ":" in ip else socket.AF_INET)
    listener.settimeout(LIMIT_S)
    listener.bind((ip, 0))
    listener.listen(1)
    return listener


def answer(listener: socket.socket, secret: bytes) -> None:
    """Answer one connection until it ends or a limit of time is over, and close the listener."""
    with listener, suppress(OSError):
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(LIMIT_S)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if not hmac.compare_digest(_read(connection, SECRET_BYTES), secret):
                return
            for _ in range(_PINGS):
                connection.sendall(_read(connection, 1))
            _read(connection, _BLOCK)
            connection.sendall(_BYTE)


def measure(ip: str, port: int, secret: bytes) -> MeasuredLink:
    """Connect to a listening stage and measure the link.

    Raises:
        OSError: the connection failed or was too slow.
    """
    with socket.create_connection((ip, port), LIMIT_S) as connection:
        connection.settimeout(LIMIT_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        own_address: str = connection.getsockname()[0]
        connection.sendall(secret)
        times = [_timed(connection, _BYTE) for _ in range(_PINGS)]
        block_s = _timed(connection, bytes(_BLOCK))
    return MeasuredLink(own_address, statistics.median(times) * 1e3, _BLOCK / block_s)


def _timed(connection: socket.socket, data: bytes) -> float:
    started = time.perf_counter()
    connection.sendall(data)
    _read(connection, 1)
    return time.perf_counter() - started


def _read(connection: socket.socket, num_bytes: int) -> bytes:
    parts: list[bytes] = []
    while num_bytes:
        part = connection.recv(min(num_bytes, 1 << 16))
        if not part:
            raise ConnectionError("the other end closed the connection")
        parts.append(part)
        num_bytes -= len(part)
    return b"".join(parts)
