"""After a tool call, a message of the tool or of the user feeds no known token again."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import product

import pytest

from app.cli.processed import ProcessedTokens
from engine.events import RequestFinished, Submit
from engine.questions import NextPrompt
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
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template
from tests.oracle.verifying import hold_to_the_oracle

A = ConversationId("A")
CALL = ForcedReply(text="<|im_start|>look")
# A call without control tokens, and an answer.
TEXT_CALL = ForcedReply(text='{"name": "look"}')
TEMPLATE_TOKENS = 24  # at most so many tokens of the template follow the last message's text
ANSWER = ForcedReply(text="The weather is like a story.")


def ask(client: InlineClient, request: Request) -> RequestFinished:
    client.send(Submit(request, time.perf_counter()))
    finished = client.run_until_idle()[-1]
    assert isinstance(finished, RequestFinished), finished
    return finished


@pytest.mark.parametrize("role", [Role.USER, Role.TOOL])
@pytest.mark.parametrize(
    ("max_tokens", "reason"), [(2, FinishReason.LENGTH), (40, FinishReason.STOP)]
)
@pytest.mark.parametrize("name", rest_in_soak(["lfm2", "gemma3", "llama"], "lfm2"))
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
    parked = cache_of(client).holdings.parked.get(A)
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


def test_count_after_a_tool_call_is_that_of_a_user_message(open_tiny: OpenTiny) -> None:
    client = open_tiny(template=Template.THINKING)
    first = Request(
        request_id=RequestId("1"),
        conversation_id=A,
        messages=(user("Look it up."),),
        new_messages=frozenset({0}),
        max_tokens=200,
        # The template keeps this thinking before a tool result and drops it before a user message.
        forced=replace(CALL, reasoning="A list of numbers is what is wanted. " * 4),
    )
    messages = (*first.messages, reply_of(ask(client, first)))
    next_prompt = NextPrompt(conversation_id=A, messages=messages)
    counted = client.answer(client.count_tokens(next_prompt))

    second = Request(
        request_id=RequestId("2"),
        conversation_id=A,
        messages=(*messages, user("x")),
        new_messages=frozenset({2}),
        max_tokens=1,
    )
    plan = ask(client, second).usage.plan
    assert 0 < plan.prompt_tokens - counted.num_tokens < TEMPLATE_TOKENS
    assert plan.restored == counted.num_cached


def result(text: str) -> Message:
    return Message(role=Role.TOOL, content=text)


class Agent:
    """A conversation whose requests are compared with all tokens that it fed before."""

    def __init__(self, client: InlineClient) -> None:
        self._client = client
        self._processed = ProcessedTokens()
        self.requests: list[Request] = []
        self.redo: list[int] = []  # number of known tokens that each request fed again

    def ask(self, *messages: Message, reply: ForcedReply) -> Message:
        request = Request(
            request_id=RequestId(f"{len(self.requests)}"),
            conversation_id=A,
            messages=messages,
            new_messages=frozenset({len(messages) - 1}),
            forced=reply,
            record_logits=True,
        )
        finished = ask(self._client, request)
        self.requests.append(request)
        self.redo.append(
            self._processed.add_answer(
                finished.prompt_ids, finished.output_ids, restored=finished.usage.plan.restored
            )
        )
        return reply_of(finished)


@pytest.mark.slow
@pytest.mark.parametrize("template", list(Template))
@pytest.mark.parametrize("name", rest_in_soak(["lfm2", "gemma3", "llama"], "lfm2"))
def test_results_that_follow_one_another_feed_no_known_token(
    open_tiny: OpenTiny, name: str, template: Template
) -> None:
    client = open_tiny(name, template)
    agent = Agent(client)
    asked = user("Look it up.")
    call = agent.ask(asked, reply=CALL)
    rain, sun = result("It rains."), result("The sun shines.")
    agent.ask(asked, call, rain, reply=ANSWER)
    answer = agent.ask(asked, call, rain, sun, reply=ANSWER)
    # The engine cannot know that this answer called a tool.
    agent.ask(asked, call, rain, sun, answer, result("A fox."), reply=ANSWER)

    assert agent.redo == [0, 0, 0, 0]
    hold_to_the_oracle(client, name, agent.requests)


@pytest.mark.parametrize(
    ("name", "template", "role"),
    rest_in_soak(
        product(["lfm2", "gemma3", "llama"], Template, [Role.USER, Role.TOOL]),
        ("lfm2", Template.KEEPING, Role.USER),
        ("lfm2", Template.THINKING, Role.TOOL),
    ),
)
def test_message_after_a_call_in_plain_text_feeds_no_known_token(
    open_tiny: OpenTiny, name: str, template: Template, role: Role
) -> None:
    client = open_tiny(name, template)
    agent = Agent(client)
    asked = user("Look it up.")
    call = agent.ask(asked, reply=TEXT_CALL)
    agent.ask(asked, call, Message(role=role, content="It rains."), reply=ANSWER)

    assert agent.redo == [0, 0]
    hold_to_the_oracle(client, name, agent.requests)


@pytest.mark.parametrize("name", ["lfm2", "llama"])
def test_changed_system_prompt_feeds_no_known_token(open_tiny: OpenTiny, name: str) -> None:
    client = open_tiny(name)
    agent = Agent(client)
    for text in ("Be brief.", "You are a fox."):
        system = Message(role=Role.SYSTEM, content=text)
        agent.ask(system, user("Look it up."), reply=ANSWER)

    assert agent.redo == [0, 0]
    hold_to_the_oracle(client, name, agent.requests)
