"""After a tool call, a message of the tool or of the user feeds no known token again."""

from __future__ import annotations

import time

import pytest

from engine.events import RequestFinished, Submit
from engine.sequences import common_prefix_len
from engine.types import (
    ConversationId,
    FinishReason,
    ForcedReply,
    Message,
    Request,
    RequestId,
    Role,
)
from tests.fakes.asking import cache_of, reply_of, user
from tests.fakes.engine_fixtures import OpenTiny
from tests.fakes.inline_engine import InlineClient
from tests.oracle.verifying import hold_to_the_oracle

A = ConversationId("A")
CALL = ForcedReply(text="<|im_start|>look")


def ask(client: InlineClient, request: Request) -> RequestFinished:
    client.send(Submit(request, time.perf_counter()))
    finished = client.run_until_idle()[-1]
    assert isinstance(finished, RequestFinished), finished
    return finished


@pytest.mark.parametrize("role", [Role.USER, Role.TOOL])
@pytest.mark.parametrize(
    ("max_tokens", "reason"), [(2, FinishReason.LENGTH), (40, FinishReason.STOP)]
)
@pytest.mark.parametrize("name", ["lfm2", "gemma3", "llama"])
def test_message_after_tool_call_feeds_no_known_token(
    open_tiny: OpenTiny, name: str, max_tokens: int, reason: FinishReason, role: Role
) -> None:
    client = open_tiny(name)
    first = Request(
        request_id=RequestId("1"),
        conversation_id=A,
        messages=(user("Look it up."),),
        new_messages=frozenset({0}),
        max_tokens=max_tokens,
        forced=CALL,
    )
    call = ask(client, first)
    parked = cache_of(client).parked_cache(A)
    assert parked is not None
    fed = tuple(parked.token_ids)

    second = Request(
        request_id=RequestId("2"),
        conversation_id=A,
        messages=(*first.messages, reply_of(call), Message(role=role, content="It rains.")),
        new_messages=frozenset({2}),
        max_tokens=1,
        record_logits=True,
    )
    answer = ask(client, second)

    assert call.reason is reason
    shared = common_prefix_len(fed, answer.prompt_ids)
    assert shared > len(call.prompt_ids) + call.reply.num_tokens
    assert answer.usage.plan.restored == shared
    assert answer.usage.plan.replayed == 0
    hold_to_the_oracle(client, name, [second])
