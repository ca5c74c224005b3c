"""The engine's loop: queueing, cancelling and failing requests, loading and unloading models."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from app.cli.client import load_model
from engine.cache.prefix_cache import PrefixCache
from engine.config import EngineConfig
from engine.errors import ContextFullError, TextTooLongError
from engine.events import (
    Cancel,
    Event,
    LoadModel,
    LoadStage,
    ModelFailed,
    ModelLoaded,
    ModelLoading,
    ModelUnloaded,
    PrefillProgress,
    RequestFailed,
    RequestFinished,
    RequestQueued,
    RequestStarted,
    Submit,
    TextDelta,
    UnloadModel,
)
from engine.questions import NextPrompt
from engine.types import (
    Channel,
    ConversationId,
    FinishReason,
    ForcedReply,
    Message,
    Request,
    RequestId,
    Role,
    SamplingParams,
)
from tests.fakes.asking import cache_of
from tests.fakes.engine_fixtures import OpenTiny, TinyModel
from tests.fakes.inline_engine import InlineClient
from tests.fakes.tiny_model import Template


def draft(*messages: Message) -> NextPrompt:
    return NextPrompt(conversation_id=ConversationId("A"), messages=messages, is_draft=True)


def submit(
    client: InlineClient,
    text: str,
    *,
    name: str = "r",
    chat: str = "A",
    **options: object,
) -> None:
    request = Request(
        request_id=RequestId(name),
        conversation_id=ConversationId(chat),
        **(
            {
                "messages": (Message(role=Role.USER, content=text),),
                "new_messages": frozenset({0}),
                "max_tokens": 8,
            }
            | options
        ),  # type: ignore[arg-type]
    )
    client.send(Submit(request, time.perf_counter()))


def of_type(events: list[Event], kind: type[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, kind)]


def test_events_of_a_request_come_in_order(open_tiny: OpenTiny) -> None:
    client = open_tiny()
    submit(client, "A list of numbers", forced=ForcedReply(text="One, two."), max_tokens=20)
    started, *deltas, finished = client.run_until_idle()

    assert isinstance(started, RequestStarted)
    assert isinstance(finished, RequestFinished)
    assert finished.reason is FinishReason.STOP
    texts = [event for event in deltas if isinstance(event, TextDelta)]
    assert deltas[-len(texts) :] == texts
    assert all(isinstance(event, PrefillProgress) for event in deltas[: -len(texts)])
    assert "".join(d.text for d in texts if d.channel is Channel.ANSWER) == finished.content
    assert finished.content == "One, two."
    assert finished.usage.output_tokens == len(finished.reply.token_ids)


def test_same_seed_gives_same_answer_after_other_requests(open_tiny: OpenTiny) -> None:
    client = open_tiny()
    sampling = SamplingParams(temperature=1.0, seed=4)

    def answer(name: str) -> str:
        submit(client, "one", name=name, sampling=sampling, max_tokens=12)
        finished = client.run_until_idle()[-1]
        assert isinstance(finished, RequestFinished)
        return finished.content

    first = answer("a")
    submit(client, "two", name="b", chat="B", sampling=SamplingParams(temperature=1.0, seed=9))
    client.run_until_idle()
    assert answer("c") == first


def test_queued_requests_report_how_many_are_ahead(open_tiny: OpenTiny) -> None:
    client = open_tiny(max_running=1)
    for number in range(3):
        submit(client, f"{number}", name=f"r{number}", chat=f"{number}")
    events = client.run_until_idle()

    ahead = [(e.request_id, e.ahead) for e in events if isinstance(e, RequestQueued)]
    assert ahead == [("r1", 1), ("r2", 2), ("r2", 1)]
    finished = [e.request_id for e in events if isinstance(e, RequestFinished)]
    assert finished == ["r0", "r1", "r2"]


def test_waiting_request_can_be_cancelled(open_tiny: OpenTiny) -> None:
    client = open_tiny()
    submit(client, "one", name="first")
    submit(client, "two", name="second", chat="B")
    client.send(Cancel(RequestId("second")))
    events = client.run_until_idle()

    (failed,) = [event for event in events if isinstance(event, RequestFailed)]
    assert failed.request_id == "second"
    assert all((failed.problem.title, failed.problem.cause, failed.problem.advice))
    assert [e.request_id for e in events if isinstance(e, RequestFinished)] == ["first"]


def test_cancel_stops_within_one_step_and_keeps_the_text(open_tiny: OpenTiny) -> None:
    client = open_tiny()
    submit(client, "one", max_tokens=1000, forced=ForcedReply(text="boat " * 50))
    while not isinstance(client.next_event(), TextDelta):
        pass
    client.send(Cancel(RequestId("r")))
    events = client.run_until_idle()

    assert len(of_type(events, TextDelta)) <= 1
    (finished,) = of_type(events, RequestFinished)
    assert isinstance(finished, RequestFinished)
    assert finished.reason is FinishReason.CANCELLED
    assert finished.content
    assert "boat".startswith(finished.content)


@pytest.mark.slow
def test_prompt_stopped_while_it_is_read_is_restored_next_time(open_tiny: OpenTiny) -> None:
    client = open_tiny()
    text = "quick brown fox " * 400
    submit(client, text)
    progress = client.next_event()
    while not isinstance(progress, PrefillProgress):
        progress = client.next_event()
    assert cache_of(client).statistics().num_conversations == 1, "it has no stored state yet"
    client.send(Cancel(RequestId("r")))
    (finished,) = of_type(client.run_until_idle(), RequestFinished)
    assert isinstance(finished, RequestFinished)
    assert (finished.reason, finished.content) == (FinishReason.CANCELLED, "")
    submit(client, text)
    (again,) = of_type(client.run_until_idle(), RequestFinished)

    assert isinstance(again, RequestFinished)
    assert again.usage.plan.restored >= progress.done


def test_prompt_beyond_context_length_is_refused_with_numbers(open_tiny: OpenTiny) -> None:
    client = open_tiny("llama")
    submit(client, "word " * 40_000)
    (failed,) = client.run_until_idle()

    assert isinstance(failed, RequestFailed)
    assert failed.problem.title == TextTooLongError.title
    assert "32,768" in failed.problem.cause
    assert "Shorten it" in failed.problem.advice
    prompt = draft(Message(role=Role.USER, content="word " * 40_000))
    counted = client.answer(client.count_tokens(prompt))
    assert counted.num_too_long == failed.problem.num_tokens > counted.num_tokens
    assert counted.is_text_too_long


def test_conversation_that_fills_the_context_is_refused_for_a_short_message(
    open_tiny: OpenTiny,
) -> None:
    client = open_tiny("llama")
    long = (
        Message(role=Role.USER, content="word " * 40_000),
        Message(role=Role.ASSISTANT, content="Yes."),
        Message(role=Role.USER, content="Go on."),
    )
    submit(client, "", messages=long, new_messages=frozenset({2}))
    (failed,) = client.run_until_idle()

    assert isinstance(failed, RequestFailed)
    assert failed.problem.title == ContextFullError.title
    assert failed.problem.num_tokens > 40_000
    assert "new chat" in failed.problem.advice
    counted = client.answer(client.count_tokens(draft(*long)))
    assert counted.num_too_long == failed.problem.num_tokens
    assert not counted.is_text_too_long


def test_template_that_raises_fails_one_request(tiny_model: TinyModel, tmp_path: Path) -> None:
    folder = tmp_path / "raising"
    folder.mkdir()
    for file in tiny_model("llama", Template.KEEPING).iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "chat_template.jinja").write_text(
        "{% if messages[-1].content == 'bad' %}{{ raise_exception('no such words') }}{% endif %}"
        + (folder / "chat_template.jinja").read_text()
    )
    client = InlineClient(EngineConfig(use_openblas=False))
    load_model(client, folder, lambda _: None)
    submit(client, "bad")
    submit(client, "good", name="other")
    events = client.run_until_idle()

    (failed,) = [event for event in events if isinstance(event, RequestFailed)]
    assert "no such words" in failed.problem.cause
    assert len(of_type(events, RequestFinished)) == 1


def test_error_in_the_model_fails_one_request(
    open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_tiny()
    submit(client, "one")
    client.run_until_idle()
    model = client.core.model
    assert model is not None
    run = type(model.adapter).run
    calls = [0]

    def failing(self: object, input_ids: object, caches: object) -> object:
        calls[0] += 1
        if calls[0] == 2:
            raise RuntimeError("a layer failed")
        return run(self, input_ids, caches)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(type(model.adapter), "run", failing)
        submit(client, "two", name="broken")
        (failed,) = of_type(client.run_until_idle(), RequestFailed)
    assert isinstance(failed, RequestFailed)
    assert "a layer failed" in failed.problem.cause
    submit(client, "two", name="again")
    assert isinstance(client.run_until_idle()[-1], RequestFinished)


def test_request_without_a_model_fails() -> None:
    client = InlineClient(EngineConfig(use_openblas=False))
    submit(client, "one")
    (failed,) = client.run_until_idle()

    assert isinstance(failed, RequestFailed)
    assert failed.problem.title == "No model is loaded."


def test_loading_reports_progress_and_can_fail_with_a_reason(
    tiny_model: TinyModel, tmp_path: Path
) -> None:
    client = InlineClient(EngineConfig(use_openblas=False))
    client.send(LoadModel(str(tiny_model("lfm2", Template.KEEPING))))
    events = client.run_until_idle()

    first, *_, before, last = events
    assert isinstance(first, ModelLoading)
    assert (first.stage, first.total_bytes) == (LoadStage.LOADING, 0), "before the files are read"
    assert isinstance(before, ModelLoading)
    assert before.stage is LoadStage.CHECKING
    weights = tiny_model("lfm2", Template.KEEPING) / "model.safetensors"
    assert before.loaded_bytes == before.total_bytes <= weights.stat().st_size
    assert isinstance(last, ModelLoaded)
    client.send(LoadModel(str(tmp_path / "missing")))
    (failed,) = client.run_until_idle()
    assert isinstance(failed, ModelFailed)
    assert failed.problem.cause == f"There is no folder {tmp_path / 'missing'}."


def test_loading_another_model_abandons_the_load_in_progress(tiny_model: TinyModel) -> None:
    client = InlineClient(EngineConfig(use_openblas=False))
    client.send(LoadModel(str(tiny_model("lfm2", Template.KEEPING))))
    client.send(LoadModel(str(tiny_model("llama", Template.KEEPING))))
    loaded = of_type(client.run_until_idle(), ModelLoaded)

    assert [event.facts.model_type for event in loaded if isinstance(event, ModelLoaded)] == [
        "llama"
    ]


def test_cache_of_a_model_that_failed_to_load_is_not_kept_for_another_model(
    open_tiny: OpenTiny, tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_tiny("llama")

    def failing(*args: object, **options: object) -> None:
        raise MemoryError("no memory for a runner")

    with monkeypatch.context() as patch:
        patch.setattr("engine.served_model.Runner", failing)
        client.send(LoadModel(str(tiny_model("qwen3_5", Template.KEEPING))))
        assert isinstance(client.run_until_idle()[-1], ModelFailed)
    load_model(client, tiny_model("llama", Template.KEEPING), lambda _: None)

    # llama has no recurrent state, so a cache for llama needs no snapshots.
    assert client.core.cache is not None
    assert not client.core.cache.holdings.needs_snapshot


def test_unloading_while_answering_keeps_the_text(open_tiny: OpenTiny) -> None:
    client = open_tiny()
    submit(client, "one", max_tokens=1000, forced=ForcedReply(text="boat " * 50))
    while not isinstance(client.next_event(), TextDelta):
        pass
    client.send(UnloadModel())
    events = client.run_until_idle()

    (finished,) = of_type(events, RequestFinished)
    assert isinstance(finished, RequestFinished)
    assert finished.content
    assert "boat".startswith(finished.content)
    assert isinstance(events[-1], ModelUnloaded)


def test_forget_returns_all_memory_of_a_conversation(open_tiny: OpenTiny) -> None:
    client = open_tiny()
    submit(client, "one")
    client.run_until_idle()
    before = client.answer(client.report_cache())
    after = client.answer(client.forget(ConversationId("A")))

    assert before.statistics.total_bytes > 0
    assert before.freed_bytes > 0
    assert before.process_bytes > before.statistics.total_bytes + before.freed_bytes
    assert after.statistics.total_bytes == 0
    assert after.freed_bytes == 0


def test_statistics_report_a_broken_invariant(
    open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_tiny()
    submit(client, "one")
    client.run_until_idle()
    sound = client.answer(client.report_cache(checks_invariants=True))

    def break_rule(cache: PrefixCache) -> None:
        raise AssertionError("a node is lost")

    monkeypatch.setattr(PrefixCache, "check_invariants", break_rule)
    broken = client.answer(client.report_cache(checks_invariants=True))
    unchecked = client.answer(client.report_cache())

    assert sound.broken is None
    assert sound.statistics.num_nodes > 0
    assert broken.broken is not None
    assert "a node is lost" in broken.broken.cause
    assert broken.statistics == sound.statistics
    assert unchecked.broken is None
    assert unchecked.statistics == sound.statistics
