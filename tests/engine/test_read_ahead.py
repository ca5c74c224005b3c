"""Reading ahead in idle time: the next turn reads only the new message. No state is evicted."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.cli.client import load_model
from app.cli.player import ScriptPlayer
from app.cli.script import parse_step
from app.cli.step_report import StepReport
from engine.cache_figures import HeldChat
from engine.config import EngineConfig
from engine.events import (
    Answered,
    Cancel,
    Event,
    IdleKind,
    IdleStopped,
    IdleWorking,
    LoadModel,
    ModelLoaded,
    PrefillProgress,
    ReadAhead,
    RequestFinished,
    RequestStarted,
    Submit,
    UnloadModel,
)
from engine.questions import Evict, EvictWhat, Forget, NextPrompt
from engine.types import (
    ConversationId,
    ForcedReply,
    Message,
    Request,
    RequestId,
    Role,
    SamplingParams,
)
from tests.fakes.asking import cache_of, reply_of, user
from tests.fakes.engine_fixtures import OpenTiny, TinyModel
from tests.fakes.inline_engine import InlineClient
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template

PLENTY = 32_000
A, B = ConversationId("A"), ConversationId("B")
# Maximum number of template tokens around a message: `<|im_end|>`, `<|im_start|>user` and the
# assistant's header.
TEMPLATE_TOKENS = 24
LONG = "The quick brown fox jumps over the lazy dog, and the dog sleeps on. " * 6
REPLY = ForcedReply(reasoning="say it in other words", text="A short story about a small boat.")

OpenShort = Callable[..., InlineClient]


@pytest.fixture
def open_short(tiny_model: TinyModel) -> OpenShort:
    """Return a function that opens an engine with short prefill chunks.

    Even a short prompt then has many chunks.
    """

    def get(template: Template = Template.THINKING, **options: object) -> InlineClient:
        fields = {"idle_work": True, "saves_battery": False, "cache_budget_bytes": 1 << 30}
        config = EngineConfig(use_openblas=False, cell_len=32, stride_len=128, **fields | options)  # type: ignore[arg-type]
        client = InlineClient(config)
        load_model(client, tiny_model("lfm2", template), lambda _: None)
        return client

    return get


def submit(
    client: InlineClient,
    *messages: Message,
    chat: ConversationId = A,
    forced: ForcedReply = REPLY,
) -> None:
    request = Request(
        request_id=RequestId("r"),
        conversation_id=chat,
        messages=messages,
        new_messages=frozenset({len(messages) - 1}),
        sampling=SamplingParams(temperature=0.0, top_p=1.0),
        max_tokens=40,
        forced=forced,
        record_logits=True,
    )
    client.send(Submit(request, time.perf_counter()))


def answer_to(client: InlineClient, *messages: Message) -> RequestFinished:
    """Await the answer to the request in progress, and compare it with the bare model.

    The engine works only while the test takes events, so no idle work runs after this function.
    """
    while True:
        event = client.next_event()
        if isinstance(event, RequestFinished):
            break
    checked = client.answer(client.verify(event.request_id, messages))
    assert checked.equal, checked
    assert checked.prompt_equal, checked
    return event


def ask(
    client: InlineClient,
    *messages: Message,
    chat: ConversationId = A,
    forced: ForcedReply = REPLY,
) -> RequestFinished:
    submit(client, *messages, chat=chat, forced=forced)
    return answer_to(client, *messages)


def idle(client: InlineClient) -> list[IdleWorking]:
    """Run all idle work and return its IdleWorking events."""
    asked = client.await_idle()
    events = client.run_until_idle()
    assert events.count(Answered(asked.question_id, None)) == 1
    return [event for event in events if isinstance(event, IdleWorking)]


def step_until(client: InlineClient, kind: type[Event]) -> Event:
    while not isinstance(event := client.next_event(), kind):
        pass
    return event


# Benefits


def test_tokens_that_were_read_ahead_are_told_apart(open_short: OpenShort) -> None:
    client = open_short()
    first = ask(client, user(LONG))
    messages = (user(LONG), reply_of(first))
    client.answer(client.evict(EvictWhat.ALL))
    client.send(ReadAhead(conversation_id=A, messages=messages))
    (*_, ahead) = idle(client)
    plan = ask(client, *messages, user("more")).usage.plan

    assert plan.restored == plan.restored_ahead == ahead.total > 0
    plan = ask(client, *messages, user("more")).usage.plan
    assert plan.restored > plan.restored_ahead == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", rest_in_soak(["qwen3_5", "lfm2", "falcon_h1", "gemma3", "llama"], "qwen3_5")
)
def test_turn_after_idle_work_reads_only_its_message(open_tiny: OpenTiny, name: str) -> None:
    player = ScriptPlayer(open_tiny(name, Template.THINKING), Path(), check=True)

    def play(step: dict[str, object]) -> list[StepReport]:
        return list(player.play(parse_step(json.dumps(step))))

    def send(text: str) -> StepReport:
        reply = {"text": REPLY.text, "reasoning": REPLY.reasoning}
        (report,) = play({"op": "send", "chat": "A", "text": text, "reply": reply})
        assert report.holds, report
        return report

    send("Please write a short story.")
    for _ in range(2):
        assert send("And another one?").replayed > 0
        assert play({"op": "idle"}) == []
        report = send("In other words?")
        assert (report.replayed, report.redo) == (0, 0)
        assert report.read <= len("In other words?") + TEMPLATE_TOKENS


def test_reply_kept_by_template_leaves_nothing_to_read_ahead(open_short: OpenShort) -> None:
    client = open_short(Template.KEEPING)
    ask(client, user("one"), forced=ForcedReply(text=REPLY.text))

    assert idle(client) == []
    assert cache_of(client).holdings.counters.copied_bytes == 0


def test_stopped_reply_is_read_ahead(open_short: OpenShort) -> None:
    client = open_short()
    submit(client, user("one"))
    for _ in range(12):
        client.next_event()
    client.send(Cancel(RequestId("r")))
    stopped = step_until(client, RequestFinished)
    assert isinstance(stopped, RequestFinished)
    assert idle(client)
    again = ask(client, user("one"), reply_of(stopped), user("two"))

    assert again.usage.plan.replayed == 0


@pytest.mark.parametrize("is_read", [False, True])
def test_message_of_a_request_stopped_before_its_answer_is_read_no_further(
    open_short: OpenShort, *, is_read: bool
) -> None:
    client = open_short()
    first = ask(client, user("one"))
    before = (user("one"), reply_of(first))
    idle(client)
    draft = ReadAhead(conversation_id=A, messages=(*before, user(LONG)), is_draft=True)
    client.send(draft)
    step_until(client, IdleWorking)
    submit(client, *draft.messages)
    reading = step_until(client, PrefillProgress)
    assert isinstance(reading, PrefillProgress)
    while is_read and client.step() and client.new_events():
        pass  # the step of the last chunk has no event
    client.send(Cancel(RequestId("r")))
    stopped = step_until(client, RequestFinished)
    assert isinstance(stopped, RequestFinished)
    assert stopped.usage.output_tokens == 0
    assert not idle(client)

    # The tokens read are kept: the app joins the next message to the one without an answer.
    plan = ask(client, *before, user(f"{LONG}\n\nIn other words?")).usage.plan
    assert plan.restored >= reading.done


@pytest.mark.slow
def test_opened_conversation_is_read_ahead(open_short: OpenShort) -> None:
    client = open_short()
    history = (user(LONG), Message(role=Role.ASSISTANT, content="Of course."))
    client.send(ReadAhead(conversation_id=A, messages=history))
    working = idle(client)

    assert {event.kind for event in working} == {IdleKind.READ_AHEAD}
    assert [event.done for event in working] == sorted({event.done for event in working})
    assert all(event.done < event.total for event in working)
    client.send(ReadAhead(conversation_id=A, messages=history))
    assert idle(client) == []
    plan = ask(client, *history, user("more")).usage.plan
    assert plan.replayed == 0
    assert plan.restored == working[0].total


def test_counted_tokens_are_cached_after_the_read_ahead(open_short: OpenShort) -> None:
    client = open_short()
    prompt = NextPrompt(conversation_id=A, messages=(user(LONG * 2),), is_draft=True)
    before = client.answer(client.count_tokens(prompt))
    assert before.num_tokens > 150
    assert before.num_cached == 0
    client.read_ahead(prompt)
    idle(client)
    after = client.answer(client.count_tokens(prompt))
    assert after == replace(before, num_cached=before.num_tokens)


@pytest.mark.slow
def test_draft_is_read_ahead_while_it_is_typed(open_short: OpenShort) -> None:
    client = open_short()
    first = ask(client, user("one"))
    before = (user("one"), reply_of(first))
    idle(client)

    def type_draft(text: str) -> int:
        draft = ReadAhead(conversation_id=A, messages=(*before, user(text)), is_draft=True)
        client.send(draft)
        working = idle(client)
        assert {event.kind for event in working} == {IdleKind.DRAFT}
        return working[0].total

    read = type_draft(LONG)
    assert read > 100
    assert 0 < type_draft(f"{LONG}and then some more") < 20
    plan = ask(client, *before, user(f"{LONG}and then some more words")).usage.plan
    assert plan.replayed == 0
    assert plan.restored > read
    assert plan.read < TEMPLATE_TOKENS


# Priorities


def test_request_waits_only_for_the_chunk_in_progress(open_short: OpenShort) -> None:
    client = open_short()
    history = (user(LONG), Message(role=Role.ASSISTANT, content="Of course."))
    client.send(ReadAhead(conversation_id=A, messages=history))
    working = step_until(client, IdleWorking)
    # Stop where no resume point is planned: the job must keep one at its end.
    while isinstance(working, IdleWorking) and working.done < 60:
        working = client.next_event()
    assert isinstance(working, IdleWorking)
    submit(client, *history, user("more"))
    stopped, started = client.next_event(), client.next_event()

    assert isinstance(stopped, IdleStopped)
    assert isinstance(started, RequestStarted)
    # The request restores exactly the tokens that had been read ahead when it was sent.
    assert started.plan.restored == working.done < working.total
    answer_to(client, *history, user("more"))


@pytest.mark.slow
def test_interrupted_read_ahead_continues_after_the_request(open_short: OpenShort) -> None:
    client = open_short()
    history = (user(LONG), Message(role=Role.ASSISTANT, content="Of course."))
    client.send(ReadAhead(conversation_id=A, messages=history))
    working = step_until(client, IdleWorking)
    while isinstance(working, IdleWorking) and working.done < 100:
        working = client.next_event()
    assert isinstance(working, IdleWorking)
    ask(client, user("one"), chat=B)
    resumed = [event for event in idle(client) if event.conversation_id == A]

    assert resumed[0].total == working.total - working.done
    assert ask(client, *history, user("more")).usage.plan.restored == working.total


def test_shown_conversation_is_read_ahead_first(open_short: OpenShort) -> None:
    client = open_short(idle_work=False)
    ask(client, user("one"))
    ask(client, user("two"), chat=B)
    client.show(A)
    client.set_idle_work(enabled=True)

    assert list(dict.fromkeys(event.conversation_id for event in idle(client))) == [A, B]


def test_idle_work_switched_off_reads_nothing(open_short: OpenShort) -> None:
    client = open_short(idle_work=False)
    first = ask(client, user("one"))
    assert idle(client) == []
    assert ask(client, user("one"), reply_of(first), user("two")).usage.plan.replayed > 0


def test_idle_work_on_battery_reads_only_the_shown_conversation(
    open_short: OpenShort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("psutil.sensors_battery", lambda: SimpleNamespace(power_plugged=False))
    client = open_short(saves_battery=True)
    first = ask(client, user("one"))
    ask(client, user("two"), chat=B)
    assert idle(client) == []
    client.show(A)
    assert {event.conversation_id for event in idle(client)} == {A}
    messages = (user("one"), reply_of(first), user(LONG))
    client.send(ReadAhead(conversation_id=A, messages=messages, is_draft=True))
    assert idle(client) == []


# Limits: no eviction, no broken cache


@pytest.mark.slow
def test_read_ahead_without_room_reads_and_evicts_nothing(
    open_short: OpenShort, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    roomy = open_short(idle_work=False)
    ask(roomy, user("one"))
    held = cache_of(roomy).holdings.ledger().total_bytes
    tight = open_short(cache_budget_bytes=held)
    first = ask(tight, user("one"))
    before = [(n.token_ids, n.snapshot, n.last_used) for n in cache_of(tight).holdings.tree.nodes()]

    assert idle(tight) == []
    assert [
        (n.token_ids, n.snapshot, n.last_used) for n in cache_of(tight).holdings.tree.nodes()
    ] == before
    assert "no room" in caplog.text
    assert ask(tight, user("one"), reply_of(first), user("two")).usage.plan.replayed > 0


@pytest.mark.slow
@pytest.mark.parametrize("spare", rest_in_soak([0, 1_000, 2_000, 4_000, 8_000, PLENTY], 0, PLENTY))
def test_idle_work_evicts_nothing_at_any_budget(open_short: OpenShort, spare: int) -> None:
    roomy = open_short(idle_work=False)
    ask(roomy, user("one"))
    ask(roomy, user("two"), chat=B)
    budget = cache_of(roomy).holdings.ledger().total_bytes + spare
    tight = open_short(cache_budget_bytes=budget, idle_work=False)
    first = ask(tight, user("one"))
    cache = cache_of(tight)
    ask(tight, user("two"), chat=B)
    points = {id(node) for node in cache.holdings.tree.nodes() if node.snapshot}
    tight.set_idle_work(enabled=True)
    asked = tight.await_idle()
    while tight.next_event() != Answered(asked.question_id, None):
        assert cache.holdings.ledger().total_bytes <= budget

    assert cache.holdings.counters.evictions == 0
    assert points <= {id(node) for node in cache.holdings.tree.nodes() if node.snapshot}
    plan = ask(tight, user("one"), reply_of(first), user("more")).usage.plan
    assert plan.replayed == 0 or spare < PLENTY


def test_forgotten_conversation_is_not_read_ahead(open_short: OpenShort) -> None:
    client = open_short()
    history = (user(LONG), Message(role=Role.ASSISTANT, content="Of course."))
    client.send(ReadAhead(conversation_id=A, messages=history))
    step_until(client, IdleWorking)
    client.ask(Forget(A))

    assert idle(client) == []
    assert list(cache_of(client).holdings.tree.nodes()) == []


@pytest.mark.parametrize("what", rest_in_soak(EvictWhat, EvictWhat.ALL))
def test_eviction_during_read_ahead_leaves_a_sound_cache(
    open_short: OpenShort, what: EvictWhat
) -> None:
    client = open_short()
    history = (user(LONG), Message(role=Role.ASSISTANT, content="Of course."))
    client.send(ReadAhead(conversation_id=A, messages=history))
    step_until(client, IdleWorking)
    step_until(client, IdleWorking)
    client.ask(Evict(what))
    idle(client)

    assert ask(client, *history, user("more")).usage.plan.replayed == 0


# Errors


@pytest.mark.slow
def test_template_error_in_read_ahead_costs_nothing(open_short: OpenShort, tmp_path: Path) -> None:
    client = open_short()
    source = client.core.model
    assert source is not None
    folder = tmp_path / "raising"
    folder.mkdir()
    for file in Path(source.facts.path).iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    template = (folder / "chat_template.jinja").read_text()
    refusal = (
        "{% if messages[0].content == 'bad' %}{{ raise_exception('no such words') }}{% endif %}"
    )
    (folder / "chat_template.jinja").write_text(refusal + template)
    load_model(client, folder, lambda _: None)
    first = ask(client, user("one"))
    client.send(ReadAhead(conversation_id=B, messages=(user("bad"), reply_of(first))))

    assert {event.conversation_id for event in idle(client)} == {A}
    assert ask(client, user("one"), reply_of(first), user("two")).usage.plan.replayed == 0


@pytest.mark.slow
def test_model_error_in_read_ahead_is_only_logged(
    open_short: OpenShort, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client = open_short()
    model = client.core.model
    assert model is not None
    first = ask(client, user("one"))

    def failing(token_ids: object, caches: object) -> object:
        raise RuntimeError("a layer failed")

    with monkeypatch.context() as patch:
        patch.setattr(model.adapter, "forward", failing)
        idle(client)
    assert "a layer failed" in caplog.text
    second = ask(client, user("one"), reply_of(first), user("two"))
    idle(client)
    messages = (user("one"), reply_of(first), user("two"), reply_of(second), user("three"))
    assert ask(client, *messages).usage.plan.replayed == 0


@pytest.mark.slow
def test_pending_read_ahead_survives_reload_of_the_same_model_only(
    open_short: OpenShort, tiny_model: TinyModel
) -> None:
    client = open_short(idle_work=False)
    same, other = (tiny_model(name, Template.THINKING) for name in ("lfm2", "llama"))
    history = (user(LONG), Message(role=Role.ASSISTANT, content="Of course."))
    client.send(ReadAhead(conversation_id=A, messages=history))
    client.set_idle_work(enabled=True)
    step_until(client, IdleWorking)
    client.send(LoadModel(str(same)))
    assert idle(client)
    assert ask(client, *history, user("more")).usage.plan.replayed == 0
    client.send(LoadModel(str(other)))
    step_until(client, ModelLoaded)

    assert idle(client) == []


def test_await_idle_without_a_model_is_answered_at_once(open_short: OpenShort) -> None:
    client = open_short()
    client.send(UnloadModel())
    client.send(ReadAhead(conversation_id=A, messages=(user(LONG), user("x"))))

    assert idle(client) == []


# The report of what each conversation has


def held(client: InlineClient, chat: ConversationId) -> HeldChat:
    report = client.answer(client.report_chats())
    (found,) = (one for one in report.chats if one.conversation_id == chat)
    return found


def test_reading_that_is_cut_off_is_reported_with_the_length_of_its_prompt(
    open_short: OpenShort,
) -> None:
    client = open_short()
    draft = NextPrompt(conversation_id=A, messages=(user(LONG),), is_draft=True)
    num_tokens = client.answer(client.count_tokens(draft)).num_tokens
    client.read_ahead(draft)
    step_until(client, IdleWorking)
    assert held(client, A).last_tokens == num_tokens
    step_until(client, IdleWorking)
    ask(client, user("one"), chat=B)  # the draft is still to be read
    assert 0 < held(client, A).memory_tokens < num_tokens
    assert held(client, A).last_tokens == num_tokens


def test_draft_that_was_removed_is_not_a_part_of_the_length(open_short: OpenShort) -> None:
    client = open_short()
    known = (user("one"), reply_of(ask(client, user("one"))))
    idle(client)
    client.send(ReadAhead(conversation_id=A, messages=(*known, user(LONG)), is_draft=True))
    step_until(client, IdleWorking)
    client.send(ReadAhead(conversation_id=A, messages=known))
    idle(client)
    assert held(client, A).memory_tokens >= held(client, A).last_tokens


@pytest.mark.parametrize("fetch_only", [True, False])
def test_copy_of_a_conversation_has_its_state_and_keeps_it(
    open_short: OpenShort, *, fetch_only: bool
) -> None:
    client = open_short()
    known = (user(LONG), reply_of(ask(client, user(LONG))))
    idle(client)
    client.send(ReadAhead(conversation_id=B, messages=known, fetch_only=fetch_only))
    assert idle(client) == []
    assert held(client, B).memory_tokens >= held(client, B).last_tokens > 100
    client.ask(Forget(A))
    assert ask(client, *known, user("more"), chat=B).usage.plan.read < TEMPLATE_TOKENS
    cache_of(client).check_invariants()
