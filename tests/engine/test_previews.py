"""Previews of answers in idle time: what is seen begins the answer, and nothing else changes."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from engine.cache_figures import CacheStatistics
from engine.chat.sentences import num_sentences
from engine.commands import Asked
from engine.config import EngineConfig
from engine.events import (
    Answered,
    Event,
    PreviewProgress,
    PreviewStage,
    RequestFinished,
    RequestStarted,
    Submit,
    UnloadModel,
)
from engine.problem import Problem
from engine.questions import EvictWhat, Preview
from engine.runner import preview as preview_job
from engine.runner.preview import MAX_PREVIEW_READ
from engine.types import (
    ConversationId,
    ForcedReply,
    Message,
    Request,
    RequestId,
    Role,
    SamplingParams,
)
from tests.fakes.asking import ask, cache_of, reply_of, user
from tests.fakes.engine_fixtures import OpenTiny, TinyModel
from tests.fakes.inline_engine import InlineClient
from tests.fakes.staged_engine import StagedClient
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template

MAX_PREVIEW_TOKENS = 40
A = ConversationId("A")
QUESTION = user("What is a boat?")
EDITED = Request(
    request_id=RequestId("edited"),
    conversation_id=A,
    messages=(user("What is a small boat?"),),
    new_messages=frozenset({0}),
    sampling=SamplingParams(temperature=0.9, seed=7, repetition_penalty=1.2),
    max_tokens=60,
    record_logits=True,
)


@pytest.fixture(autouse=True)
def _previews_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preview_job, "MAX_PREVIEW_TOKENS", MAX_PREVIEW_TOKENS)


def previews(events: list[Event]) -> list[Preview]:
    return [
        one.answer
        for one in events
        if isinstance(one, Answered) and isinstance(one.answer, Preview)
    ]


def stages(events: list[Event]) -> list[PreviewStage]:
    """Return the reported stages, each once in a row."""
    found: list[PreviewStage] = []
    for event in events:
        if isinstance(event, PreviewProgress) and found[-1:] != [event.stage]:
            found.append(event.stage)
    return found


def memory(client: InlineClient) -> CacheStatistics:
    return replace(cache_of(client).statistics(), matches=0, copied_bytes=0)


def run_request(client: InlineClient, request: Request) -> RequestFinished:
    client.send(Submit(request, time.perf_counter()))
    events = client.run_until_idle()
    return next(event for event in events if isinstance(event, RequestFinished))


def continued(request: Request, preview: Preview) -> Request:
    """Return the request whose reply begins with a preview."""
    assert preview.reply is not None
    begun = Message(
        role=Role.ASSISTANT,
        content=preview.content,
        reasoning=preview.reasoning,
        reply=preview.reply,
    )
    return replace(
        request,
        messages=(*request.messages, begun),
        new_messages=request.new_messages | {len(request.messages)},
        max_tokens=request.max_tokens - preview.reply.num_tokens,
    )


def writing(client: InlineClient, request: Request = EDITED) -> Asked[Preview]:
    """Start a preview, and run it until it has text."""
    asked = client.make_preview(request)
    while PreviewStage.WRITING not in stages(client.new_events()):
        assert client.step()
    return asked


@pytest.mark.parametrize(
    ("name", "template"),
    rest_in_soak(
        [("qwen3_5", Template.THINKING), ("lfm2", Template.KEEPING), ("llama", Template.KEEPING)],
        ("qwen3_5", Template.THINKING),
    ),
)
def test_answer_that_begins_with_its_preview_equals_the_answer_without_one(
    open_tiny: OpenTiny, name: str, template: Template
) -> None:
    request = replace(EDITED, max_tokens=MAX_PREVIEW_TOKENS + 8)
    whole = run_request(open_tiny(name, template), request)
    client = open_tiny(name, template)
    ask(client, QUESTION)
    before = memory(client)
    client.make_preview(request)
    events = client.run_until_idle()

    (preview,) = previews(events)
    assert stages(events) == [PreviewStage.READING, PreviewStage.WRITING]
    assert memory(client) == before
    assert preview.reply is not None
    assert whole.reply.token_ids[: preview.reply.num_tokens] == preview.reply.token_ids
    answer = continued(request, preview)
    for sent, num_left in ((request, 0), (answer, 0 if preview.is_whole else 1)):
        counted = client.answer(client.count_tokens(sent))
        assert counted.num_tokens - counted.num_cached == num_left
    finished = run_request(client, answer)
    assert finished.reply == whole.reply
    assert finished.usage.plan.num_fed == num_left  # the newest token of a preview is not fed
    checked = client.answer(client.verify(answer.request_id, answer.messages))
    assert checked.equal
    assert checked.replay_difference == 0
    again = run_request(client, replace(request, request_id=RequestId("again")))
    assert again.usage.plan.num_fed == 0
    assert again.reply == whole.reply
    cache_of(client).check_invariants()


def test_preview_ends_after_two_sentences_and_reports_the_tokens_of_its_text(
    open_tiny: OpenTiny,
) -> None:
    client = open_tiny("llama")
    text = "A boat floats. It is small! It has a sail and a long way to go."
    client.make_preview(replace(EDITED, forced=ForcedReply(text=text)))
    events = client.run_until_idle()

    (preview,) = previews(events)
    assert text.startswith(preview.content)
    assert num_sentences(preview.content) == 2
    assert not preview.is_whole
    shown = [
        one.preview for one in events if isinstance(one, PreviewProgress) and one.preview.reply
    ]
    numbers = [one.reply.num_tokens for one in shown if one.reply is not None]
    assert numbers == list(range(1, len(shown) + 1))
    assert all(preview.content.startswith(one.content) for one in shown)


def test_preview_that_is_cut_within_a_character_ends_before_it(open_tiny: OpenTiny) -> None:
    client = open_tiny("llama")
    text = "é" * ((MAX_PREVIEW_TOKENS - 2) // 2) + "a"  # one token, after two for each é
    client.make_preview(replace(EDITED, forced=ForcedReply(text=text + "é" * 9)))

    (preview,) = previews(client.run_until_idle())

    assert preview.content == text
    assert preview.reply is not None
    assert preview.reply.num_tokens == MAX_PREVIEW_TOKENS - 1


@pytest.mark.parametrize("looks_ahead", [True, False])
@pytest.mark.parametrize("name", ["qwen3_5", "llama"])
def test_preview_of_a_short_answer_is_whole_and_the_answer_ends_with_it(
    open_tiny: OpenTiny, name: str, looks_ahead: bool
) -> None:
    client = open_tiny(name, looks_ahead=looks_ahead)
    client.make_preview(replace(EDITED, forced=ForcedReply(text="Yes")))
    (preview,) = previews(client.run_until_idle())
    assert preview.is_whole

    finished = run_request(client, replace(continued(EDITED, preview), forced=ForcedReply(text="")))
    assert finished.content == "Yes"
    assert finished.usage.output_tokens == 0
    assert finished.usage.plan.num_fed == 0


@pytest.mark.parametrize("looks_ahead", [True, False])
def test_end_that_the_model_drew_for_a_preview_is_drawn_again_from_its_kept_logits(
    open_tiny: OpenTiny, looks_ahead: bool
) -> None:
    client = open_tiny("qwen3_5", looks_ahead=looks_ahead)
    preview, request = Preview(), EDITED
    while not preview.is_whole:
        sampling = replace(request.sampling, seed=request.sampling.seed + 1)
        request = replace(request, sampling=sampling)
        client.make_preview(request)
        (preview,) = previews(client.run_until_idle())
    finished = run_request(client, continued(request, preview))
    assert finished.reply == preview.reply
    assert finished.usage.plan.num_fed == 0


def test_request_interrupts_a_preview_within_one_step_and_the_preview_begins_again(
    open_tiny: OpenTiny,
) -> None:
    client = open_tiny("qwen3_5")
    ask(client, QUESTION, chat="B")
    asked = writing(client)
    request = replace(EDITED, request_id=RequestId("other"), conversation_id=ConversationId("B"))
    client.send(Submit(replace(request, max_tokens=4), time.perf_counter()))
    client.step()
    events = client.new_events()
    assert stages(events) == [PreviewStage.ANSWERS]
    assert any(isinstance(one, RequestStarted) for one in events)

    events = client.run_until_idle()
    assert stages(events) == [PreviewStage.WRITING]
    ends = [one for one in events if isinstance(one, RequestFinished | Answered)]
    assert isinstance(ends[0], RequestFinished)
    assert [one.question_id for one in ends[1:] if isinstance(one, Answered)] == [asked.question_id]


@pytest.mark.parametrize("num_ahead", [0, 1])
@pytest.mark.parametrize("looks_ahead", [True, False])
@pytest.mark.parametrize("name", ["qwen3_5", "lfm2", "llama"])
def test_request_continues_a_preview_that_it_interrupts_though_the_preview_is_withdrawn(
    open_tiny: OpenTiny, name: str, looks_ahead: bool, num_ahead: int
) -> None:
    whole = run_request(open_tiny(name), EDITED)
    client = open_tiny(name, looks_ahead=looks_ahead)
    ask(client, QUESTION)
    asked = client.make_preview(EDITED)
    shown = Preview()
    while shown.reply is None or shown.reply.num_tokens < 3:
        client.step()
        shown = next(
            (one.preview for one in client.new_events() if isinstance(one, PreviewProgress)), shown
        )
    for _ in range(num_ahead):  # the words on screen are behind
        client.step()
    counted = client.answer(client.count_tokens(EDITED))
    assert counted.num_tokens == counted.num_cached, "the message was read for the preview"
    answer = continued(EDITED, shown)
    client.send(Submit(answer, time.perf_counter()))
    client.withdraw(asked)
    events = client.run_until_idle()

    finished = next(event for event in events if isinstance(event, RequestFinished))
    assert finished.usage.plan.num_fed <= 1
    assert finished.usage.plan.restored_ahead > 3
    assert finished.reply == whole.reply
    checked = client.answer(client.verify(answer.request_id, answer.messages))
    assert checked.replay_difference == 0


@pytest.mark.parametrize("ending", ["withdrawn", "replaced", "forgotten", "evicted"])
def test_state_of_a_preview_that_is_not_sent_is_freed(open_tiny: OpenTiny, ending: str) -> None:
    client = open_tiny("qwen3_5")
    ask(client, QUESTION)
    asked = client.make_preview(EDITED)
    (preview,) = previews(client.run_until_idle())
    match ending:
        case "withdrawn":
            client.withdraw(asked)
        case "replaced":
            client.make_preview(replace(EDITED, messages=(user("Another boat"),)))
        case "forgotten":
            client.forget(A)
        case _:
            client.evict(EvictWhat.ALL)
    client.run_until_idle()

    plan = run_request(client, continued(EDITED, preview)).usage.plan
    assert plan.num_fed > 1


def test_state_of_a_preview_stays_after_a_request_that_begins_otherwise(
    open_tiny: OpenTiny,
) -> None:
    client = open_tiny("qwen3_5")
    ask(client, QUESTION)
    request = replace(EDITED, max_tokens=20)
    client.make_preview(request)
    (preview,) = previews(client.run_until_idle())
    ask(client, user("Another boat"))

    assert run_request(client, continued(request, preview)).usage.plan.num_fed == 1


def test_state_of_a_preview_is_not_used_without_the_state_before_it(open_tiny: OpenTiny) -> None:
    client = open_tiny("qwen3_5")
    answer = reply_of(ask(client, QUESTION))
    request = replace(EDITED, messages=(QUESTION, answer, user("And a ship?")))
    request = replace(request, new_messages=frozenset({2}), max_tokens=20)
    client.make_preview(request)
    (preview,) = previews(client.run_until_idle())
    budget = cache_of(client).budget_bytes
    cache_of(client).set_budget(0)
    cache_of(client).set_budget(budget)

    sent = continued(request, preview)
    finished = run_request(client, sent)
    assert finished.usage.plan.restored == 0
    assert client.answer(client.verify(sent.request_id, sent.messages)).replay_difference == 0


def test_preview_in_a_full_cache_evicts_nothing_and_its_request_reads_nothing_again(
    open_tiny: OpenTiny,
) -> None:
    client = open_tiny("qwen3_5")
    for chat in ("B", "C", "A"):
        ask(client, QUESTION, chat=chat)
    cache_of(client).set_budget(cache_of(client).statistics().total_bytes)
    before = memory(client)
    request = replace(EDITED, max_tokens=20)
    client.make_preview(request)
    (preview,) = previews(client.run_until_idle())
    assert memory(client) == before

    plan = run_request(client, continued(request, preview)).usage.plan
    assert plan.num_fed == 1


def test_newer_preview_a_withdrawal_and_an_unload_end_a_preview_and_free_its_memory(
    open_tiny: OpenTiny,
) -> None:
    client = open_tiny("qwen3_5")
    ask(client, QUESTION)
    before = memory(client)
    first = writing(client)
    assert memory(client).hot_bytes > before.hot_bytes
    second = client.make_preview(EDITED)
    client.step()
    refused = [
        one.question_id
        for one in client.new_events()
        if isinstance(one, Answered) and isinstance(one.answer, Problem)
    ]
    assert refused == [first.question_id]

    client.withdraw(second)
    assert previews(client.run_until_idle()) == []
    assert memory(client) == before

    writing(client)
    client.send(UnloadModel())
    events = client.run_until_idle()
    assert previews(events) == []
    assert stages(events) == []


def test_preview_begins_again_when_the_state_of_its_chat_is_forgotten(open_tiny: OpenTiny) -> None:
    client = open_tiny("qwen3_5")
    ask(client, QUESTION)
    writing(client)
    client.forget(A)
    events = client.run_until_idle()
    assert stages(events)[0] is PreviewStage.READING
    assert len(previews(events)) == 1
    assert memory(client).hot_bytes == 0


def test_preview_that_would_read_too_much_names_the_number_of_tokens(open_tiny: OpenTiny) -> None:
    client = open_tiny("llama")
    text = "The quick brown fox jumps over the lazy dog. " * 300
    client.make_preview(replace(EDITED, messages=(user(text),)))
    (preview,) = previews(client.run_until_idle())

    assert preview.refusal is not None
    number = int(preview.refusal.cause.split()[0].replace(",", ""))
    assert number > MAX_PREVIEW_READ


def test_preview_without_memory_is_refused_and_evicts_nothing(open_tiny: OpenTiny) -> None:
    client = open_tiny("qwen3_5", audit_max_tokens=0)
    ask(client, QUESTION)
    cache_of(client).set_budget(cache_of(client).statistics().total_bytes + 100)
    before = memory(client)
    client.make_preview(EDITED)
    (preview,) = previews(client.run_until_idle())

    assert preview.refusal is not None
    assert "memory" in preview.refusal.cause
    assert memory(client) == before


def test_preview_of_a_divided_model_is_refused(tiny_model: TinyModel) -> None:
    config = EngineConfig(
        use_openblas=False, cache_budget_bytes=1 << 28, saves_battery=False, idle_work=False
    )
    client = StagedClient(tiny_model("llama", Template.KEEPING), (1, 1), config)
    client.make_preview(EDITED)
    (preview,) = previews(client.run_until_idle())

    assert preview.refusal is not None
    assert "several Macs" in preview.refusal.cause


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("", 0),
        ("A boat.", 0),
        ("A boat. ", 1),
        ("It costs 3.14 now. Yes?! “No.” So", 3),
        ("1. First\n2. Second", 1),
        ("好。可以吗？", 2),  # noqa: RUF001
        ("... \n\n", 0),
    ],
)
def test_sentences_are_counted_once_they_are_complete(text: str, number: int) -> None:
    assert num_sentences(text) == number
