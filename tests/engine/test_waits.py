"""The wait of a request beside the long prompt of another conversation: its length and its reason."""

from __future__ import annotations

import time

import pytest

from engine.events import (
    Event,
    PrefillProgress,
    RequestQueued,
    RequestStarted,
    Submit,
    TextDelta,
    WaitReason,
)
from engine.types import ConversationId, Request, RequestId
from tests.fakes.asking import user
from tests.fakes.engine_fixtures import OpenTiny
from tests.fakes.inline_engine import InlineClient

LONG = "word " * 600  # about 1,800 tokens, and more than SHORT_PROMPT


def send(client: InlineClient, chat: str, text: str) -> None:
    request = Request(
        request_id=RequestId(chat),
        conversation_id=ConversationId(chat),
        messages=(user(text),),
        new_messages=frozenset({0}),
        max_tokens=3,
    )
    client.send(Submit(request, time.perf_counter()))


def run_until(client: InlineClient, kind: type[Event], chat: str) -> list[Event]:
    events = [client.next_event()]
    while not (isinstance(events[-1], kind) and getattr(events[-1], "request_id", "") == chat):
        events.append(client.next_event())
    return events


def waits(events: list[Event], chat: str) -> list[tuple[WaitReason, str | None]]:
    queued = (one for one in events if isinstance(one, RequestQueued) and one.request_id == chat)
    return [(one.reason, one.behind) for one in queued]


@pytest.fixture
def reading(open_tiny: OpenTiny) -> InlineClient:
    """Return an engine that has fed a part of the long prompt of chat A."""
    client = open_tiny(cell_len=64, stride_len=256)
    send(client, "A", LONG)
    run_until(client, PrefillProgress, "A")
    return client


@pytest.mark.parametrize("shown", ["A", "B", None])
def test_short_message_waits_for_one_pass_of_a_long_prompt_at_most(
    reading: InlineClient, shown: str | None
) -> None:
    reading.show(None if shown is None else ConversationId(shown))
    send(reading, "B", "How are you?")
    events = run_until(reading, TextDelta, "B")
    passes = [one for one in events if isinstance(one, PrefillProgress) and one.request_id == "A"]
    assert len(passes) <= 1
    assert not waits(events, "A"), "a line about a wait of few passes would only flicker"


def test_long_message_waits_until_another_chat_is_read(reading: InlineClient) -> None:
    send(reading, "B", LONG)
    events = run_until(reading, RequestStarted, "B")
    assert waits(events, "B") == [(WaitReason.READING, "A")]


def test_prompt_that_the_shown_chat_interrupts_reports_its_wait(reading: InlineClient) -> None:
    reading.show(ConversationId("B"))
    send(reading, "B", LONG)
    events = run_until(reading, PrefillProgress, "B")
    assert waits(events, "A") == [(WaitReason.READING, "B")]


def test_message_beyond_the_answers_at_one_time_waits_for_one(open_tiny: OpenTiny) -> None:
    client = open_tiny(max_running=1)
    send(client, "A", "One")
    send(client, "B", "Two")
    assert waits(run_until(client, TextDelta, "B"), "B") == [(WaitReason.ANSWERS, None)]
