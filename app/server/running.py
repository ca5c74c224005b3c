"""The thread of the server: an event loop with uvicorn, from start to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import uvicorn
from typing_extensions import override

from app.server.access import ServerAddress
from app.server.application import make_application
from app.server.async_engine import AsyncEngine
from app.server.connection import BoundedConnection
from app.server.generations import Generations
from app.server.kept_replies import KeptReplies
from app.server.live_requests import SeenRequest, SeenRequests
from app.server.model_choice import Choice, OfferedModels
from app.server.report import Watcher
from app.words import server as words
from engine.catalog.card import ModelCard
from engine.clients import Clients
from engine.commands import EngineCommands
from engine.errors import UserFixableError

log = logging.getLogger(__name__)

_MAX_CONNECTIONS = 256
# Seconds for open responses at the end. Their requests have been cancelled before, so they end
# soon.
_END_S = 2


class ListenError(UserFixableError):
    """The server can't listen on its address."""

    title = words.NOT_STARTED
    advice = words.CHOOSE_PORT


class RunningServer:
    """A server that listens. `stop` ends it."""

    def __init__(
        self,
        engine: EngineCommands,
        clients: Clients,
        address: ServerAddress,
        watcher: Watcher,
        replies_file: Path | None = None,
        choice: Choice | None = None,
    ) -> None:
        """Start a server.

        Args:
            engine: the engine that answers.
            clients: the clients of this engine.
            address: where to listen.
            watcher: told of each request, on the thread of the server.
            replies_file: where the model's replies are kept, None: in memory.
            choice: the models that requests can name, and how they are loaded. None: they cannot.

        Raises:
            ListenError: the address is in use, or is none of this machine.
            Exception: the thread failed at its start.
        """
        self._engine = engine
        self._clients = clients
        self._access = address.access
        self._watcher = watcher
        self._replies_file = replies_file
        self._offered = OfferedModels(choice)
        self._socket = _listen(address.host, address.port)
        self._server: Future[uvicorn.Server] = Future()
        self._thread = threading.Thread(target=self._run, name="server", daemon=True)
        self._thread.start()
        self._server.result()
        port: int = self._socket.getsockname()[1]
        self.url = f"http://{_in_url(address.host)}:{port}"

    def stop(self) -> tuple[SeenRequest, ...]:
        """Stop all answers and end the thread. Return the last requests, whose texts are gone."""
        self._server.result().should_exit = True
        self._thread.join()
        return tuple(replace(one, has_texts=False) for one in self._live.seen(None).requests)

    @property
    def has_replies_file(self) -> bool:
        """True if the server uses the file of replies."""
        return self._replies_file is not None

    def clear_replies(self) -> None:
        """Delete all kept replies. Their messages are encoded again when a client sends them."""
        self._call(self._replies.clear)

    def offer(self, cards: tuple[ModelCard, ...]) -> None:
        """Replace the models of this computer, of which requests choose one if they may."""
        self._call(lambda: self._offered.offer(cards))

    def expect_model(self, *, is_expected: bool) -> None:
        """Let requests wait while the app searches or loads a model."""
        self._call(lambda: self._async_engine.expect_model(is_expected=is_expected))

    def look(self, shown: int | None, on_seen: Callable[[SeenRequests], None]) -> None:
        """Pass the requests to `on_seen`, on the thread of the server.

        shown: the number of the request whose texts are wanted.
        """
        self._call(lambda: on_seen(self._live.seen(shown)))

    def stop_answer(self, number: int) -> None:
        """End the answer to a request. What was read stays cached."""
        self._call(lambda: self._live.stop(number))

    def _call(self, call: Callable[[], None]) -> None:
        """Run a call on the thread of the server later, unless the server has ended."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call)

    def _run(self) -> None:
        try:
            with contextlib.closing(self._socket):
                asyncio.run(self._serve())
        except BaseException as error:
            if self._server.done():
                raise
            self._server.set_exception(error)  # the thread that starts the server waits for it

    async def _serve(self) -> None:
        engine = self._async_engine = AsyncEngine(self._engine, self._clients)
        self._loop = asyncio.get_running_loop()
        self._replies = KeptReplies(self._replies_file)
        generations = Generations(engine, self._replies, self._watcher, self._offered)
        self._live = generations.live
        server = _Server(
            uvicorn.Config(
                make_application(generations, self._access),
                http=BoundedConnection,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                limit_concurrency=_MAX_CONNECTIONS,
                timeout_graceful_shutdown=_END_S,
            ),
            engine,
        )
        self._server.set_result(server)
        with contextlib.closing(self._replies), contextlib.closing(engine):
            await server.serve(sockets=[self._socket])


class _Server(uvicorn.Server):
    """A uvicorn server that stops all answers before it waits for open responses."""

    def __init__(self, config: uvicorn.Config, engine: AsyncEngine) -> None:
        super().__init__(config)
        self._engine = engine

    @override
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._engine.cancel_all()
        await super().shutdown(sockets)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_MAX_CONNECTIONS)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ListenError(words.cannot_listen(host, port, reason)) from error


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
