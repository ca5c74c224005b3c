"""Helpers that send one request to an InlineClient and run its engine until the reply ends."""

from __future__ import annotations

import time

from engine.cache.prefix_cache import PrefixCache
from engine.events import RequestFinished, Submit
from engine.types import ConversationId, Message, Request, RequestId, Role, SamplingParams
from tests.fakes.inline_engine import InlineClient


def user(text: str) -> Message:
    return Message(role=Role.USER, content=text)


def reply_of(finished: RequestFinished) -> Message:
    return Message(
        role=Role.ASSISTANT,
        content=finished.content,
        reasoning=finished.reasoning,
        reply=finished.reply,
    )


def submit(client: InlineClient, *messages: Message, chat: str = "A", side: bool = False) -> None:
    request = Request(
        request_id=RequestId("r"),
        conversation_id=ConversationId(chat),
        messages=messages,
        new_messages=frozenset({len(messages) - 1}),
        sampling=SamplingParams(temperature=0.0),
        max_tokens=6,
        side=side,
    )
    client.send(Submit(request, time.perf_counter()))


def ask(
    client: InlineClient, *messages: Message, chat: str = "A", side: bool = False
) -> RequestFinished:
    submit(client, *messages, chat=chat, side=side)
    events = client.run_until_idle()
    (finished,) = (event for event in events if isinstance(event, RequestFinished))
    return finished


def cache_of(client: InlineClient) -> PrefixCache:
    assert client.core.cache is not None
    return client.core.cache
