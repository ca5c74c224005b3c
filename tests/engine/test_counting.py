"""Questions for lengths of prompts: exact for requests, rare while requests run, withdrawn on demand."""

from __future__ import annotations

from engine.counting import SHARE, OpenCounts
from engine.events import Answered, Event
from engine.problem import Problem
from engine.questions import Ask, CountTokens, NextPrompt, TokensCounted
from engine.types import ConversationId, Request, RequestId
from tests.fakes.asking import ask, user
from tests.fakes.engine_fixtures import OpenTiny

QUESTION = CountTokens(NextPrompt(conversation_id=ConversationId("a")))
COUNTED = TokensCounted(num_tokens=3, num_cached=0)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_counting_takes_a_small_share_of_the_time_while_requests_run() -> None:
    clock, events = Clock(), list[Event]()
    counts = OpenCounts(events.append, clock)
    for _ in range(3):
        counts.add(Ask(QUESTION), QUESTION)

    def count(_question: CountTokens) -> TokensCounted:
        clock.now += 0.5
        return COUNTED

    assert counts.step(count, is_busy=True)
    assert not counts.step(count, is_busy=True)
    clock.now += 0.5 / SHARE
    assert counts.step(count, is_busy=True)
    assert counts.step(count, is_busy=False), "nothing runs, so nothing has to wait"
    assert not counts
    answers = [event.answer for event in events if isinstance(event, Answered)]
    assert [one.is_busy for one in answers if isinstance(one, TokensCounted)] == [True, True, False]


def test_withdrawn_question_is_answered_with_a_problem() -> None:
    events = list[Event]()
    counts = OpenCounts(events.append)
    first, second = Ask(QUESTION), Ask(QUESTION)
    counts.add(first, QUESTION)
    counts.add(second, QUESTION)
    counts.withdraw(first.question_id)
    counts.withdraw(first.question_id)
    assert counts.step(lambda _: COUNTED, is_busy=False)

    refused, counted = events
    assert isinstance(refused, Answered)
    assert refused.question_id == first.question_id
    assert isinstance(refused.answer, Problem)
    assert counted == Answered(second.question_id, COUNTED)


def test_request_is_counted_without_a_trace(open_tiny: OpenTiny) -> None:
    client = open_tiny("qwen3_5")
    message = user("Who sails the boat? " * 9)
    request = Request(
        request_id=RequestId("1"),
        conversation_id=ConversationId("A"),
        messages=(message,),
        new_messages=frozenset({0}),
    )
    before = client.answer(client.count_tokens(request))
    again = client.answer(client.count_tokens(request))
    finished = ask(client, message)
    after = client.answer(client.count_tokens(request))

    assert before == again
    assert before.plan == finished.usage.plan
    assert (before.num_cached, before.num_tokens) == (0, finished.usage.plan.prompt_tokens)
    assert (after.num_cached, after.num_on_disk) == (after.num_tokens, 0)
    assert after.num_tokens == before.num_tokens
