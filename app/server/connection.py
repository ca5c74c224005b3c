"""A connection that is closed if a client sends a request's head too slowly, or takes no answer."""

from __future__ import annotations

import asyncio

import h11
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

# Seconds in which the head of a request must have come
HEAD_S = 10.0
# Seconds in which a client must take a byte of what was sent to it
TAKE_S = 60.0


class BoundedConnection(H11Protocol):
    """uvicorn's connection with limits of time for the head of each request and for its answer.

    uvicorn limits the size of a head, and the time between two requests, but not the time of a
    head. A few hundred clients that send a byte now and then would take all connections. It also
    waits without end for a client that does not read its answer.
    """

    _closing: asyncio.TimerHandle | None = None
    _aborting: asyncio.TimerHandle | None = None

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
        self._expect_taking()

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_taking()

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_aborting()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_closing()
        self._stop_aborting()

    def _expect_head(self) -> None:
        """Start the time while a head is expected, stop it while there is a request."""
        if self.conn.their_state is not h11.IDLE:
            self._stop_closing()
        elif self._closing is None:
            self._closing = self.loop.call_later(HEAD_S, self.transport.close)

    def _stop_closing(self) -> None:
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None

    def _expect_taking(self) -> None:
        """Start the time in which the client must take some of the bytes that wait for it."""
        self._stop_aborting()
        num_bytes = self.transport.get_write_buffer_size()
        if num_bytes:
            self._aborting = self.loop.call_later(TAKE_S, self._check_taking, num_bytes)

    def _check_taking(self, num_bytes: int) -> None:
        """End the connection, and so the answer, if the client has taken none of so many bytes."""
        if self.transport.get_write_buffer_size() < num_bytes:
            self._expect_taking()
        elif not self._is_writing:
            self.transport.abort()

    @property
    def _is_writing(self) -> bool:
        """True while a next answer adds bytes, after which their number tells nothing.

        The time starts again when this answer waits for the client, or is complete.
        """
        is_answered = not self.cycle or self.cycle.response_complete
        return not is_answered and not self.flow.write_paused

    def _stop_aborting(self) -> None:
        if self._aborting is not None:
            self._aborting.cancel()
            self._aborting = None
