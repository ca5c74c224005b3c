"""Commands and events over the socket: equal values come out, and damaged ones raise WireError."""

from __future__ import annotations

import json
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.cache_figures import NOTHING_CACHED, CacheReport
from engine.config import EngineConfig
from engine.events import (
    Answered,
    Command,
    Event,
    LoadModel,
    LoadStage,
    ModelFailed,
    ModelLoading,
    RequestFinished,
    Submit,
    TextDelta,
    Want,
)
from engine.hosts.wire import StageSocket, WireError, decode, encode
from engine.problem import Problem
from engine.questions import Ask, CountTokens, Evict, EvictWhat, NextPrompt, ParseCalls, QuestionId
from engine.types import (
    Channel,
    ConversationId,
    FinishReason,
    Message,
    ReplyTokens,
    Request,
    RequestId,
    Role,
    SamplingParams,
    ToolCall,
)
from engine.usage import PromptPlan, Reason, ReasonKind, Usage
from engine.wanted import DiskSettings, Wanted

REPLY = ReplyTokens.of([1, 70_000, 3], answer_start=1, tokenizer_hash="abc")
REQUEST = Request(
    request_id=RequestId("r"),
    conversation_id=ConversationId("c"),
    messages=(
        Message(role=Role.USER, content="a “b”\n\ud800"),
        Message(role=Role.ASSISTANT, content="x", reasoning="y", reply=REPLY),
        Message(
            role=Role.ASSISTANT, content="", calls=(ToolCall(name="look", arguments='{"n": 1}'),)
        ),
        Message(role=Role.TOOL, content="2", tool_name="look"),
    ),
    new_messages=frozenset({0, 1}),
    sampling=SamplingParams(temperature=0.0, seed=7),
    max_drafts=None,
    tools='[{"type": "function"}]',
)
PLAN = PromptPlan(
    prompt_tokens=9,
    restored=4,
    replayed=2,
    read=3,
    reasons=(Reason(kind=ReasonKind.FAULT, num_tokens=2, at=4, text="why"),),
)
USAGE = Usage(
    plan=PLAN,
    output_tokens=3,
    queue_ms=0.5,
    render_ms=1,
    restore_ms=2,
    prefill_ms=3,
    ttft_ms=4,
    total_ms=5,
    decode_tok_s=float("inf"),
    cache_bytes=1 << 40,
)
COMMANDS = [
    Submit(REQUEST, 1.25),
    LoadModel("/models/ü", kv_bits=4),
    Want(Wanted(shown=ConversationId("c"), pinned=frozenset({ConversationId("d")}))),
    Want(Wanted(disk=DiskSettings("/disk", budget_bytes=7), idle_work=False)),
    Ask(Evict(EvictWhat.HOT)),
    Ask(CountTokens(NextPrompt(conversation_id=ConversationId("c"), is_draft=True))),
    Ask(ParseCalls("look()", "[]")),
]
EVENTS = [
    TextDelta(RequestId("r"), Channel.ANSWER, "text", 3),
    ModelLoading("/m", LoadStage.LOADING, 0.5, 1, 2),
    ModelFailed("/m", Problem(title="t", cause="c", advice="a")),
    RequestFinished(RequestId("r"), FinishReason.STOP, "x", "y", REPLY, USAGE, (1, 2, 3)),
    Answered(QuestionId(1), CacheReport(replace(NOTHING_CACHED, disk_problem="full"))),
    Answered(QuestionId(2), "A title"),
    Answered(QuestionId(5), (ToolCall(name="look", arguments='{"n": 1}'),)),
    Answered(QuestionId(3), None),
    Answered(QuestionId(4), Problem(title="t", cause="c", advice="a")),
]


def over_json(value: object) -> Any:
    return json.loads(json.dumps(encode(value)))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: type(one).__name__)
def test_command_over_json_is_equal(command: Command) -> None:
    assert decode(Command, over_json(command)) == command


@pytest.mark.parametrize("event", EVENTS, ids=lambda one: type(one).__name__)
def test_event_over_json_is_equal(event: Event) -> None:
    assert decode(Event, over_json(event)) == event


def test_config_over_json_is_equal() -> None:
    config = EngineConfig(disk_folder=Path("/a"), unload_after_s=2, cache_budget_bytes=5)

    assert decode(EngineConfig, over_json(config)) == config


@pytest.mark.parametrize(
    "damaged",
    [
        {"class": "Shutdwn"},
        {"class": "Path"},
        {"class": "Cancel"},
        {"class": "Cancel", "request_id": 3},
        {"class": "Ask", "question_id": 1, "question": {"class": "Evict", "what": "everything"}},
        {"class": "Ask", "question_id": 1, "question": "Evict"},
        ["Cancel"],
        None,
        7,
    ],
)
def test_damaged_command_raises_wire_error(damaged: object) -> None:
    with pytest.raises(WireError):
        decode(Command, damaged)


def test_channel_delivers_values_in_order_until_the_other_end_closes() -> None:
    one, other = socket.socketpair()
    near, far = StageSocket(one), StageSocket(other)
    for command in COMMANDS:
        near.send(command)
    near.close()

    assert [far.receive(Command) for _ in COMMANDS] == COMMANDS
    assert far.receive(Command) is None
    far.close()
