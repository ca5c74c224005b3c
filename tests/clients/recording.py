"""A server whose exchanges with clients are recorded, with the cost of each answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.server import running
from app.server.guard import Guard
from engine.types import ForcedReply, Request, RequestId
from engine.usage import Usage
from tests.fakes.served_model import ServedModel, served_model

_ERROR = 400  # least status of an error


@dataclass(slots=True)
class Exchange:
    """A request over HTTP and its response."""

    method: str
    path: str
    body: bytearray = field(default_factory=bytearray)
    status: int = 0
    answer: bytearray = field(default_factory=bytearray)
    request: Request | None = None  # the request that the engine got

    @property
    def error(self) -> str:
        """The message of an error, or ""."""
        if self.status < _ERROR:
            return ""
        try:
            return str(json.loads(self.answer)["error"]["message"])
        except (ValueError, KeyError, TypeError):
            return self.answer[:200].decode(errors="replace")


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of an answer."""

    usage: Usage
    redo: int  # tokens that were fed although the engine had fed them before, after the same prefix


# The exchange to which the running task belongs
_current: ContextVar[Exchange] = ContextVar("_current")


class RecordedServer:
    """A server and its exchanges so far."""

    def __init__(self, served: ServedModel, exchanges: list[Exchange]) -> None:
        self.url = served.server.url
        self.exchanges = exchanges
        self._served = served

    def await_idle(self) -> None:
        """Wait until nothing is left to read ahead."""
        self._served.await_idle()

    def costs(self) -> dict[RequestId, Cost]:
        """Return the costs of all finished requests. To be called once, when nothing runs."""
        costs: dict[RequestId, Cost] = {}
        for one in self._served.finished:
            restored = one.usage.plan.restored
            redo = self._served.processed.add_answer(
                one.prompt_ids, one.output_ids, restored=restored
            )
            costs[one.request_id] = Cost(one.usage, redo)
        return costs


class _Recorder:
    """An ASGI application that records what another one receives and sends."""

    def __init__(self, app: ASGIApp, exchanges: list[Exchange]) -> None:
        self._app = app
        self._exchanges = exchanges

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(scope["method"], scope["path"])
        self._exchanges.append(exchange)
        _current.set(exchange)

        async def receive_body() -> Message:
            message = await receive()
            exchange.body += message.get("body", b"")
            return message

        async def send_answer(message: Message) -> None:
            exchange.status = message.get("status", exchange.status)
            exchange.answer += message.get("body", b"")
            await send(message)

        await self._app(scope, receive_body, send_answer)


@contextmanager
def recorded_server(
    folder: Path, reply_to: Callable[[Request], ForcedReply], **config: Any
) -> Generator[RecordedServer]:
    """Serve a model with given replies, and record."""
    exchanges: list[Exchange] = []
    make_application: Callable[..., Guard] = running.make_application

    def make_recorded(*arguments: object) -> _Recorder:
        return _Recorder(make_application(*arguments), exchanges)

    def reply(request: Request) -> ForcedReply:
        _current.get().request = request
        return reply_to(request)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "make_application", make_recorded)
        with served_model(folder, **config) as served:
            served.reply_to = reply
            yield RecordedServer(served, exchanges)
