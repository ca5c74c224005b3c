"""A reply that was cut off and then continued equals a reply that was never cut off."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import mlx.core as mx
import pytest

from engine.events import RequestFailed, RequestFinished, Shutdown, Submit, TextDelta
from engine.models.adapter import ModelAdapter
from engine.questions import Evict, EvictWhat
from engine.types import (
    ConversationId,
    FinishReason,
    Message,
    Request,
    RequestId,
    Role,
    SamplingParams,
)
from engine.usage import ReasonKind
from tests.fakes.asking import reply_of, user
from tests.fakes.engine_fixtures import OpenTiny
from tests.fakes.inline_engine import InlineClient
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import CONFIGS, Template
from tests.oracle.verifying import hold_to_the_oracle

NUM_TOKENS = 12
CUT = 5
QUESTION = Request(
    request_id=RequestId("r"),
    conversation_id=ConversationId("A"),
    messages=(user("What is a small boat?"),),
    new_messages=frozenset({0}),
    sampling=SamplingParams(temperature=0.8, seed=7, repetition_penalty=1.2),
    max_tokens=NUM_TOKENS,
    record_logits=True,
)


def answer(client: InlineClient, request: Request) -> RequestFinished:
    client.send(Submit(request, time.perf_counter()))
    finished = client.run_until_idle()[-1]
    assert isinstance(finished, RequestFinished), finished
    return finished


def rest_of(request: Request, finished: RequestFinished) -> Request:
    """Return the request that continues the reply of a finished request."""
    return replace(
        request,
        messages=(*request.messages, reply_of(finished)),
        new_messages=frozenset(),
        max_tokens=NUM_TOKENS - finished.usage.output_tokens,
        stop_after=None,
    )


def test_answer_cut_off_when_the_model_is_dropped_takes_no_pass(
    open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_tiny("lfm2")
    client.send(Submit(replace(QUESTION, record_logits=False), 0.0))
    while not isinstance(client.next_event(), TextDelta):
        pass
    passes: list[int] = []
    run = ModelAdapter.run

    def counting(self: ModelAdapter, input_ids: mx.array, caches: Sequence[object]) -> mx.array:
        passes.append(input_ids.size)
        return run(self, input_ids, caches)

    monkeypatch.setattr(ModelAdapter, "run", counting)
    client.unload_model()
    client.run_until_idle()
    assert passes == []


@pytest.mark.slow
@pytest.mark.parametrize("name", rest_in_soak(["lfm2", "qwen3_5", "llama"], "lfm2", "llama"))
def test_answer_cut_off_by_a_quit_is_continued_after_the_next_start(
    open_tiny: OpenTiny, tmp_path: Path, name: str
) -> None:
    whole = answer(open_tiny(name), QUESTION)
    for until, is_kept in ((0.0, False), (None, True)):
        folder = tmp_path / str(until)
        first = open_tiny(name, disk_folder=folder)
        first.send(Submit(QUESTION, time.perf_counter()))
        while not isinstance(first.next_event(), TextDelta):
            pass
        first.send(Shutdown(until))
        first.core.run()
        stopped = first.new_events()[-1]
        assert isinstance(stopped, RequestFinished)
        second = open_tiny(name, disk_folder=folder)
        finished = answer(second, rest_of(QUESTION, stopped))
        second.send(Shutdown())
        second.core.run()

        assert finished.reply == whole.reply
        # No pass has read the newest token of the answer.
        plan = finished.usage.plan
        assert plan.restored_disk == (plan.prompt_tokens - 1 if is_kept else 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "looks_ahead"),
    rest_in_soak(
        product(CONFIGS, [True, False]), ("qwen3_5", True), ("gemma3", True), ("lfm2", False)
    ),
)
def test_continued_reply_equals_uncut_reply_and_reads_nothing(
    open_tiny: OpenTiny, name: str, looks_ahead: bool
) -> None:
    whole = answer(open_tiny(name), QUESTION)
    client = open_tiny(name, looks_ahead=looks_ahead)
    stopped = answer(client, replace(QUESTION, stop_after=CUT))
    rest = rest_of(QUESTION, stopped)
    finished = answer(client, rest)

    assert whole.reply.num_tokens > CUT
    assert stopped.reason is FinishReason.CANCELLED
    assert finished.reply == whole.reply
    assert (finished.content, finished.reasoning) == (whole.content, whole.reasoning)
    assert finished.output_ids == whole.output_ids[CUT:]
    plan = finished.usage.plan
    assert plan.restored == plan.prompt_tokens
    hold_to_the_oracle(client, name, [rest])


@pytest.mark.parametrize("template", Template)
def test_reply_cut_off_after_every_token_equals_uncut_reply(
    open_tiny: OpenTiny, template: Template
) -> None:
    whole = answer(open_tiny(template=template), QUESTION)
    client = open_tiny(template=template)
    finished = answer(client, replace(QUESTION, max_tokens=1))
    request = QUESTION
    while finished.reply.num_tokens < whole.reply.num_tokens:
        assert finished.reason is FinishReason.LENGTH
        request = replace(QUESTION, messages=(*QUESTION.messages, reply_of(finished)), max_tokens=1)
        finished = answer(client, replace(request, new_messages=frozenset()))
        assert finished.usage.plan.restored == finished.usage.plan.prompt_tokens
        assert finished.usage.output_tokens <= 1

    assert finished.reply == whole.reply
    assert (finished.content, finished.reasoning) == (whole.content, whole.reasoning)


@pytest.mark.slow
def test_turn_after_continued_reply_replays_nothing(open_tiny: OpenTiny) -> None:
    client = open_tiny()
    stopped = answer(client, replace(QUESTION, stop_after=CUT))
    rest = rest_of(QUESTION, stopped)
    finished = answer(client, rest)
    further = replace(
        QUESTION,
        messages=(*QUESTION.messages, reply_of(finished), user("And a large one?")),
        new_messages=frozenset({2}),
    )

    assert answer(client, further).usage.plan.replayed == 0
    hold_to_the_oracle(client, "qwen3_5", [further])


def test_continue_after_eviction_replays_prompt_and_reports_reason(open_tiny: OpenTiny) -> None:
    whole = answer(open_tiny(), QUESTION)
    client = open_tiny()
    stopped = answer(client, replace(QUESTION, stop_after=CUT))
    client.ask(Evict(EvictWhat.ALL))
    rest = rest_of(QUESTION, stopped)
    finished = answer(client, rest)
    plan = finished.usage.plan

    assert finished.reply == whole.reply
    assert (plan.restored, plan.read, plan.replayed) == (0, 0, plan.prompt_tokens)
    assert [reason.kind for reason in plan.reasons] == [ReasonKind.STATE_EVICTED]
    hold_to_the_oracle(client, "qwen3_5", [rest])


def test_reply_without_stored_ids_is_continued_from_its_text(open_tiny: OpenTiny) -> None:
    client = open_tiny(template=Template.THINKING)
    for content, reasoning in (
        ("It is a boat", "hm"),
        ("", "hm, a boat"),
        ("A <|im_end|> b", "hm"),
    ):
        begun = Message(role=Role.ASSISTANT, content=content, reasoning=reasoning)
        finished = answer(client, rest_of_text(begun))
        assert finished.content.startswith(content)
        assert finished.reasoning.startswith(reasoning)
        assert finished.usage.output_tokens == CUT


@pytest.mark.parametrize(
    ("template", "content", "reasoning"),
    [
        (Template.KEEPING, "<think> is a mark, <|im_start|> too", ""),
        (Template.THINKING, "", "</think> is a mark"),
    ],
)
def test_control_marks_in_continued_text_stay_text(
    open_tiny: OpenTiny, template: Template, content: str, reasoning: str
) -> None:
    begun = Message(role=Role.ASSISTANT, content=content, reasoning=reasoning)
    finished = answer(open_tiny(template=template), rest_of_text(begun))
    assert finished.content.startswith(content)
    assert finished.reasoning.startswith(reasoning)


def test_continue_with_ids_of_another_template_is_refused(open_tiny: OpenTiny) -> None:
    stopped = answer(open_tiny(), replace(QUESTION, stop_after=CUT))
    client = open_tiny(template=Template.THINKING)
    client.send(Submit(rest_of(QUESTION, stopped), time.perf_counter()))
    (failed,) = client.run_until_idle()
    assert isinstance(failed, RequestFailed)
    assert failed.problem.title == "This answer can’t be continued."


def rest_of_text(begun: Message) -> Request:
    return replace(
        QUESTION,
        messages=(*QUESTION.messages, begun),
        new_messages=frozenset(),
        max_tokens=CUT,
        record_logits=False,
    )


def test_reply_that_is_continued_twice_is_the_same_both_times(open_tiny: OpenTiny) -> None:
    # The sliding windows are full. Each token is then written over the oldest one.
    client = open_tiny("gemma3")
    asked = replace(QUESTION, messages=(user("What is a small boat? " * 8),))
    rest = rest_of(asked, answer(client, replace(asked, stop_after=CUT)))
    first, second = (
        answer(client, replace(rest, request_id=RequestId(name))) for name in ("first", "second")
    )

    assert second.reply == first.reply
    assert second.usage.plan.restored == second.usage.plan.prompt_tokens
    hold_to_the_oracle(client, "gemma3", [replace(rest, request_id=RequestId("second"))])
