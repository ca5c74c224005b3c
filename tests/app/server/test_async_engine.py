"""The events of requests for coroutines: signs of life between them, and the end."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from app.server import async_engine
from app.server.async_engine import AsyncEngine
from engine.clients import Clients
from engine.commands import EngineCommands
from engine.errors import ContextFullError
from engine.events import Command, RequestFailed
from engine.types import ConversationId, Message, Request, RequestId, Role

ASKED = Request(
    request_id=RequestId("a"),
    conversation_id=ConversationId("chat"),
    messages=(Message(role=Role.USER, content="Hi."),),
    new_messages=frozenset({0}),
)
FAILED = RequestFailed(ASKED.request_id, ContextFullError("It is too long.", 9).problem)


class SilentEngine:
    """An engine that gets requests and sends nothing."""

    def send(self, _command: Command) -> None:
        pass


async def pass_turns() -> None:
    """Let the other tasks run. With SILENCE_S of 0, each turn is a time without an event."""
    for _ in range(9):
        await asyncio.sleep(0)


def test_client_that_takes_no_events_gets_one_sign_of_life_and_none_after_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(async_engine, "SILENCE_S", 0)

    async def run() -> None:
        clients = Clients(lambda _event: None)
        engine = AsyncEngine(cast("EngineCommands", SilentEngine()), clients)
        events = engine.events(ASKED, lambda _last: None)
        assert await anext(events) is None
        await pass_turns()
        clients.emit(FAILED)
        await pass_turns()
        assert [event async for event in events] == [None, FAILED]

        await pass_turns()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())
