"""Titles in idle time: they delay, evict and change nothing. Real engine, tiny random models."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeGuard

import pytest

from engine.cache_figures import CacheStatistics
from engine.commands import Asked
from engine.config import EngineConfig
from engine.events import (
    Answered,
    Event,
    IdleKind,
    IdleWorking,
    RequestFinished,
    RequestStarted,
    Submit,
    UnloadModel,
)
from engine.problem import Problem
from engine.questions import NextPrompt
from engine.runner.title import MAX_TITLE_TOKENS, TitleMaker
from engine.types import ConversationId, ForcedReply, Message, Request, RequestId, SamplingParams
from tests.fakes.asking import ask, cache_of, reply_of, user
from tests.fakes.engine_fixtures import OpenTiny, TinyModel
from tests.fakes.inline_engine import InlineClient
from tests.fakes.staged_engine import StagedClient
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template

A = ConversationId("A")
QUESTION = user("What is a boat?")
ASK = user("Name this conversation.")
MODELS = [
    ("qwen3_5", Template.KEEPING),
    ("qwen3_5", Template.THINKING),
    ("llama", Template.THINKING),
    ("gemma3", Template.KEEPING),
]

ForceTitle = Callable[[str], list[Request]]


@pytest.fixture
def force_title(monkeypatch: pytest.MonkeyPatch) -> ForceTitle:
    """Return a function that sets what the random model writes. It returns the title requests."""
    real = TitleMaker._requests  # pyright: ignore[reportPrivateUsage]
    made: list[Request] = []

    def force(text: str) -> list[Request]:
        def requests(maker: TitleMaker, task: NextPrompt) -> Iterator[Request]:
            for request in real(maker, task):
                made.append(replace(request, forced=ForcedReply(text=text)))
                yield made[-1]

        monkeypatch.setattr(TitleMaker, "_requests", requests)
        return made

    return force


def start(client: InlineClient, *messages: Message, chat: ConversationId = A) -> Asked[str]:
    return client.make_title(NextPrompt(conversation_id=chat, messages=(*messages, ASK)))


def titles(events: list[Event]) -> list[str]:
    return [
        one.answer for one in events if isinstance(one, Answered) and isinstance(one.answer, str)
    ]


def work(events: list[Event]) -> list[IdleWorking]:
    return [e for e in events if isinstance(e, IdleWorking) and e.kind is IdleKind.TITLE]


def is_refusal(event: Event) -> TypeGuard[Answered]:
    return isinstance(event, Answered) and isinstance(event.answer, Problem)


def step_into(client: InlineClient, messages: tuple[Message, ...], num_steps: int) -> Asked[str]:
    """Start a title and run some of its steps."""
    asked = start(client, *messages)
    seen = 0
    while seen < num_steps:
        assert client.step()
        seen += len(work(client.new_events()))
    return asked


def memory(client: InlineClient) -> CacheStatistics:
    """Return the statistics of the cache. A title counts as a match, and what it copies as copied."""
    return replace(cache_of(client).statistics(), matches=0, copied_bytes=0)


@pytest.mark.parametrize(("name", "template"), MODELS)
def test_title_arrives_and_leaves_the_cache_as_it_was(
    open_tiny: OpenTiny, force_title: ForceTitle, name: str, template: Template
) -> None:
    force_title("A boat on the sea")
    client = open_tiny(name, template)
    answer = ask(client, QUESTION)
    before = memory(client)
    start(client, QUESTION, reply_of(answer))
    idle = client.await_idle()
    events = client.run_until_idle()

    assert titles(events) == ["A boat on the sea"]
    assert events[-1] == Answered(idle.question_id, None)
    assert memory(client) == before
    # The conversation is restored, but for a short reply whose thoughts the template drops.
    assert work(events)[0].total - MAX_TITLE_TOKENS < 50


def test_random_title_that_never_ends_is_reported_without_its_cut_line(
    open_tiny: OpenTiny,
) -> None:
    client = open_tiny("llama")
    answer = ask(client, QUESTION)
    start(client, QUESTION, reply_of(answer))
    events = client.run_until_idle()

    (text,) = titles(events)
    assert work(events)[-1].done <= work(events)[-1].total
    assert len(text) < 200


def test_title_of_a_thinking_model_is_written_without_thoughts(
    open_tiny: OpenTiny, force_title: ForceTitle
) -> None:
    made = force_title("Boats")
    client = open_tiny("qwen3_5", Template.THINKING)
    answer = ask(client, QUESTION)
    start(client, QUESTION, reply_of(answer))

    assert titles(client.run_until_idle()) == ["Boats"]
    assert [request.thinking for request in made] == [False]


def next_turn(client: InlineClient, answer: RequestFinished) -> tuple[Event, ...]:
    """Ask a second question. Return the events, without measured times, and check the answer."""
    asked = (QUESTION, reply_of(answer), user("And what is a ship?"))
    request = Request(
        request_id=RequestId("next"),
        conversation_id=A,
        messages=asked,
        new_messages=frozenset({2}),
        sampling=SamplingParams(temperature=0.0),
        max_tokens=8,
        record_logits=True,
    )
    client.send(Submit(request, time.perf_counter()))
    events = client.run_until_idle()
    checked = client.answer(client.verify(request.request_id, asked))
    assert checked.equal
    assert checked.replay_difference == 0
    return tuple(one for one in events if isinstance(one, RequestStarted | RequestFinished))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "template"),
    rest_in_soak(MODELS, ("qwen3_5", Template.THINKING), ("gemma3", Template.KEEPING)),
)
def test_request_during_a_title_has_the_plan_and_the_answer_as_without_titles(
    open_tiny: OpenTiny, name: str, template: Template
) -> None:
    found: list[tuple[object, ...]] = []
    for is_titled in (False, True):
        client = open_tiny(name, template)
        answer = ask(client, QUESTION)
        if is_titled:
            step_into(client, (QUESTION, reply_of(answer)), 3)
        before = cache_of(client).holdings.counters.evictions
        started, finished = next_turn(client, answer)
        assert isinstance(started, RequestStarted)
        assert isinstance(finished, RequestFinished)
        assert started.plan.replayed == (
            0 if template is Template.KEEPING else started.plan.replayed
        )
        assert cache_of(client).holdings.counters.evictions == before
        found.append((started.plan, finished.reply, finished.prompt_ids, memory(client)))
    assert found[0] == found[1]


def test_request_interrupts_a_title_within_one_step_and_the_title_comes_later(
    open_tiny: OpenTiny, force_title: ForceTitle
) -> None:
    force_title("A long title about a small boat on the sea")
    client = open_tiny("qwen3_5")
    answer = ask(client, QUESTION)
    step_into(client, (QUESTION, reply_of(answer)), 3)
    asked = (QUESTION, reply_of(answer), user("And a ship?"))
    request = Request(
        request_id=RequestId("next"),
        conversation_id=A,
        messages=asked,
        new_messages=frozenset({2}),
        max_tokens=2,
    )
    client.send(Submit(request, time.perf_counter()))
    client.step()
    assert any(isinstance(one, RequestStarted) for one in client.new_events())

    events = client.run_until_idle()
    assert [type(one) for one in events if isinstance(one, RequestFinished | Answered)] == [
        RequestFinished,
        Answered,
    ]


@pytest.mark.parametrize("num_steps", [1, 3])
def test_cancelled_title_sends_nothing_and_frees_its_memory(
    open_tiny: OpenTiny, num_steps: int
) -> None:
    for is_forgotten in (False, True):
        client = open_tiny("qwen3_5")
        answer = ask(client, QUESTION)
        before = memory(client)
        asked = step_into(client, (QUESTION, reply_of(answer)), num_steps)
        assert memory(client).hot_bytes > before.hot_bytes
        if is_forgotten:
            client.forget(A)
        else:
            client.withdraw(asked)
        events = client.run_until_idle()

        assert titles(events) == []
        assert [one.question_id for one in events if is_refusal(one)] == [asked.question_id]
        assert work(events) == []
        if not is_forgotten:
            assert memory(client) == before


def test_model_unloaded_during_a_title_ends_it(open_tiny: OpenTiny) -> None:
    client = open_tiny("qwen3_5")
    answer = ask(client, QUESTION)
    step_into(client, (QUESTION, reply_of(answer)), 2)
    client.send(UnloadModel())
    events = client.run_until_idle()

    assert titles(events) == []
    assert sum(map(is_refusal, events)) == 1
    assert client.core.cache is None
    assert client.core.model is None


def test_title_without_memory_is_not_made_and_evicts_nothing(open_tiny: OpenTiny) -> None:
    client = open_tiny("qwen3_5", audit_max_tokens=0)
    answer = ask(client, QUESTION)
    cache_of(client).set_budget(cache_of(client).statistics().total_bytes + 100)
    before = memory(client)
    start(client, QUESTION, reply_of(answer))
    events = client.run_until_idle()

    assert titles(events) == []
    assert work(events) == []
    assert memory(client) == before


def test_short_title_is_made_beside_a_full_cache_and_evicts_nothing(
    open_tiny: OpenTiny, force_title: ForceTitle
) -> None:
    force_title("Boats")
    client = open_tiny("qwen3_5")
    answer = ask(client, QUESTION)
    cache_of(client).set_budget(cache_of(client).statistics().total_bytes)
    before = memory(client)
    start(client, QUESTION, reply_of(answer))

    assert titles(client.run_until_idle()) == ["Boats"]
    assert memory(client) == before


def test_title_that_needs_much_reading_is_not_made(open_tiny: OpenTiny) -> None:
    client = open_tiny("llama")
    start(client, user("The quick brown fox jumps over the lazy dog. " * 300))
    events = client.run_until_idle()

    assert titles(events) == []
    assert work(events) == []


def test_title_of_a_divided_model_is_not_made(tiny_model: TinyModel) -> None:
    config = EngineConfig(
        use_openblas=False, cache_budget_bytes=1 << 28, saves_battery=False, idle_work=False
    )
    client = StagedClient(tiny_model("llama", Template.KEEPING), (1, 1), config)
    answer = ask(client, QUESTION)
    start(client, QUESTION, reply_of(answer))
    events = client.run_until_idle()

    assert titles(events) == []
    assert work(events) == []


def test_title_with_a_failed_pass_is_empty_and_the_next_request_is_right(
    open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_tiny("qwen3_5")
    answer = ask(client, QUESTION)
    step_into(client, (QUESTION, reply_of(answer)), 3)
    assert client.core.model is not None
    adapter = type(client.core.model.adapter)
    with monkeypatch.context() as broken:
        broken.setattr(adapter, "forward", _fail)
        broken.setattr(adapter, "run", _fail)
        client.run_until_idle()

    started, _ = next_turn(client, answer)
    assert isinstance(started, RequestStarted)
    assert started.plan.replayed == 0


def _fail(*_: object, **__: object) -> None:
    raise RuntimeError("a layer failed")
