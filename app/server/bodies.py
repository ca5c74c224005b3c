"""The bodies of requests while they are received and translated, within limits of size and time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.requests import Request

from app.server.errors import ErrorKind, ServerError
from app.server.fields import Fields, parse_body
from app.words import server as words

_MAX_BODY_BYTES = 64_000_000
_MAX_TOTAL_BYTES = 256_000_000  # of all bodies at the same time
_BODY_S = 60.0  # seconds in which a body must have come


class Bodies:
    """The bodies that are in memory. For the event loop of the server."""

    def __init__(self) -> None:
        self._num_bytes = 0

    @asynccontextmanager
    async def read(self, request: Request) -> AsyncGenerator[Fields]:
        """Yield the fields of a body. Its bytes count until the context ends.

        Raises:
            ServerError: it is no JSON object, it is too large, it does not come, or too many others
                are in memory.
        """
        body = bytearray()
        try:
            await self._receive(request, body)
            yield parse_body(body)
        finally:
            self._num_bytes -= len(body)

    async def _receive(self, request: Request, body: bytearray) -> None:
        """Add the bytes of a request to its body as they come."""
        try:
            async with asyncio.timeout(_BODY_S):
                async for chunk in request.stream():
                    body += chunk
                    self._num_bytes += len(chunk)
                    self._check(len(body))
        except TimeoutError:
            raise ServerError(ErrorKind.INVALID, words.SLOW_BODY) from None

    def _check(self, length: int) -> None:
        if length > _MAX_BODY_BYTES:
            raise ServerError(ErrorKind.TOO_LARGE, words.too_large(_MAX_BODY_BYTES))
        if self._num_bytes > _MAX_TOTAL_BYTES:
            raise ServerError(ErrorKind.BUSY, words.LARGE_BODIES)
