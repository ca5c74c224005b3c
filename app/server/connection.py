"""A connection that is closed if a client sends the head of a request too slowly, or never."""

from __future__ import annotations

import asyncio

import h11
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

# Seconds in which the head of a request must have come
HEAD_S = 10.0


class BoundedConnection(H11Protocol):
    """uvicorn's connection with a limit of time for the head of each request.

    uvicorn limits the size of a head, and the time between two requests, but not the time of a head. A
    few hundred clients that send a byte now and then would take all connections.
    """

    _closing: asyncio.TimerHandle | None = None

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._expect_head()

    @override
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._expect_head()

    @override
    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._expect_head()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_timer()

    def _expect_head(self) -> None:
        """Start the time while a head is expected, stop it while there is a request."""
        if self.conn.their_state is not h11.IDLE:
            self._stop_timer()
        elif self._closing is None:
            self._closing = self.loop.call_later(HEAD_S, self.transport.close)

    def _stop_timer(self) -> None:
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None
