"""Answers given at the same time in several conversations equal answers given one at a time."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from itertools import product

import mlx.core as mx
import pytest

from engine.cache.trees import evaluate
from engine.chat.reply import ReplyStream, TextPiece
from engine.errors import CancelledWaitingError
from engine.events import (
    Cancel,
    Event,
    RequestFailed,
    RequestFinished,
    RequestQueued,
    RequestStarted,
    Submit,
    TextDelta,
)
from engine.models.adapter import ModelAdapter
from engine.runner import decoder
from engine.types import (
    ConversationId,
    FinishReason,
    ForcedReply,
    Request,
    RequestId,
    SamplingParams,
)
from tests.fakes.asking import cache_of, user
from tests.fakes.engine_fixtures import OpenTiny
from tests.fakes.inline_engine import InlineClient
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import CONFIGS
from tests.oracle.verifying import hold_to_the_oracle

FORCED = "Yes, it is a list of things."
WORDS = "A list of the small boats that one sees from here, please. "


def request_of(number: int, *, num_words: int | None = None, max_tokens: int = 0) -> Request:
    """Return a request. Its length and sampling depend on `number`; odd numbers force the reply."""
    text = WORDS * (1 + number % 3) if num_words is None else "word " * num_words
    is_forced = number % 2 == 1
    return Request(
        request_id=RequestId(f"r{number}"),
        conversation_id=ConversationId(f"{number}"),
        messages=(user(f"{number} {text}"),),
        new_messages=frozenset({0}),
        sampling=SamplingParams(
            temperature=0.8,
            seed=number,
            repetition_penalty=1.0 + 0.1 * (number % 3),
            xtc_probability=0.5 * (number % 2 == 0),
        ),
        max_tokens=max_tokens or 4 + 3 * number,
        forced=ForcedReply(text=FORCED) if is_forced else None,
        record_logits=True,
    )


def send(client: InlineClient, requests: Iterable[Request]) -> None:
    for request in requests:
        client.send(Submit(request, time.perf_counter()))


def finished_in(events: Iterable[Event]) -> dict[str, RequestFinished]:
    return {e.request_id: e for e in events if isinstance(e, RequestFinished)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "looks_ahead"),
    rest_in_soak(
        product(CONFIGS, [True, False]), ("qwen3_5", True), ("gemma3", True), ("lfm2", False)
    ),
)
def test_answers_given_together_equal_answers_given_alone(
    open_tiny: OpenTiny, name: str, looks_ahead: bool
) -> None:
    together = open_tiny(name, looks_ahead=looks_ahead)
    alone = open_tiny(name, looks_ahead=False, max_running=1)
    requests = [request_of(number) for number in range(4)]
    send(together, requests)
    ours = finished_in(together.run_until_idle())
    for request in requests:
        send(alone, [request])
        (theirs,) = finished_in(alone.run_until_idle()).values()
        assert ours[request.request_id].reply == theirs.reply
        assert ours[request.request_id].reason == theirs.reason

    hold_to_the_oracle(together, name, requests)


def test_tokens_of_concurrent_answers_are_interleaved(open_tiny: OpenTiny) -> None:
    client = open_tiny()
    # On a busy machine, the first answer is many tokens ahead when the last one begins.
    requests = [request_of(number, num_words=5, max_tokens=160) for number in (1, 3, 5)]
    send(client, requests)
    events = client.run_until_idle()
    started = [i for i, event in enumerate(events) if isinstance(event, RequestStarted)]
    ended = [i for i, event in enumerate(events) if isinstance(event, RequestFinished)]

    assert max(started) < min(ended)
    between = [e.request_id for e in events[max(started) : min(ended)] if isinstance(e, TextDelta)]
    assert {*between} == {"r1", "r3", "r5"}


@pytest.mark.slow
@pytest.mark.parametrize("looks_ahead", rest_in_soak([True, False], True))
def test_stopped_request_keeps_its_text_and_other_requests_continue(
    open_tiny: OpenTiny, looks_ahead: bool
) -> None:
    client = open_tiny(looks_ahead=looks_ahead)
    requests = [request_of(number, num_words=20, max_tokens=40) for number in range(4)]
    send(client, requests)
    num_deltas, events = 0, list[Event]()
    while num_deltas < 30:
        events.append(client.next_event())
        num_deltas += isinstance(events[-1], TextDelta)
    client.send(Cancel(RequestId("r2")))
    client.send(Cancel(RequestId("r0")))
    finished = finished_in([*events, *client.run_until_idle()])

    assert finished["r2"].reason is FinishReason.CANCELLED
    assert finished["r2"].reply.token_ids
    assert finished["r3"].reason is FinishReason.STOP
    hold_to_the_oracle(client, "qwen3_5", requests)
    # The state of the stopped request is cached, so its question reads nothing when it is repeated.
    send(client, [requests[2]])
    assert finished_in(client.run_until_idle())["r2"].usage.plan.read == 0


@pytest.mark.slow
def test_prompt_is_read_between_tokens_of_another_answer(open_tiny: OpenTiny) -> None:
    client = open_tiny(max_gap_s=0.001, cell_len=64, stride_len=256)
    running = request_of(1, num_words=5, max_tokens=60)
    long = request_of(2, num_words=150)
    send(client, [running])
    events = [client.next_event()]
    while not isinstance(events[-1], TextDelta):
        events.append(client.next_event())
    send(client, [long])
    events = client.run_until_idle()
    started = next(i for i, e in enumerate(events) if isinstance(e, RequestStarted))
    first = next(
        i for i, e in enumerate(events) if isinstance(e, TextDelta) and e.request_id == "r2"
    )
    meanwhile = [e for e in events[started:first] if isinstance(e, TextDelta)]

    assert len(meanwhile) > 3
    hold_to_the_oracle(client, "qwen3_5", [running, long])


@pytest.mark.slow
def test_prompt_of_shown_conversation_is_read_first(open_tiny: OpenTiny) -> None:
    client = open_tiny(cell_len=64, stride_len=256)
    requests = [request_of(number, num_words=100) for number in (2, 4, 6)]
    send(client, requests)
    assert isinstance(client.next_event(), RequestStarted)
    client.show(ConversationId("6"))
    events = client.run_until_idle()
    started = [e.request_id for e in events if isinstance(e, RequestStarted)]
    first_tokens = list(dict.fromkeys(e.request_id for e in events if isinstance(e, TextDelta)))

    assert started == ["r6", "r4"]
    assert first_tokens == ["r6", "r2", "r4"]


def assert_only_the_first_fails(client: InlineClient, requests: list[Request]) -> None:
    send(client, requests)
    events = client.run_until_idle()
    first, *others = (request.request_id for request in requests)

    assert [e.request_id for e in events if isinstance(e, RequestFailed)] == [first]
    assert set(finished_in(events)) == set(others)


@pytest.mark.slow
def test_failing_row_of_a_batch_ends_only_one_request(
    open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_tiny()
    assert client.core.model is not None
    requests = [request_of(number, num_words=20, max_tokens=20) for number in (1, 2, 4)]
    tokenizer = client.core.model.prompts.tokenizer
    broken = tokenizer.encode_text(FORCED)[5]
    run = ModelAdapter.run

    def failing(self: ModelAdapter, input_ids: mx.array, caches: list[object]) -> mx.array:
        logits = run(self, input_ids, caches)
        if input_ids.shape[1] == 1 and mx.any(input_ids == broken).item():
            raise RuntimeError("this token breaks it")
        return logits

    monkeypatch.setattr(ModelAdapter, "run", failing)
    assert_only_the_first_fails(client, requests)
    monkeypatch.undo()
    hold_to_the_oracle(client, "qwen3_5", [requests[1], requests[2]])


@pytest.mark.slow
def test_failing_row_beside_a_prompt_ends_only_one_request(
    open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the decoder reads part of a prompt, it waits for the running rows. That wait fails."""
    failures = iter([RuntimeError("no memory")])

    def evaluate_but_once(*trees: object) -> None:
        if (failure := next(failures, None)) is not None:
            raise failure
        evaluate(*trees)

    client = open_tiny(max_gap_s=0.001, cell_len=64, stride_len=256)
    requests = [request_of(number, max_tokens=40) for number in (2, 4)]
    send(client, requests)
    written = set[str]()
    while written != {"r2", "r4"}:
        event = client.next_event()
        if isinstance(event, TextDelta):
            written.add(event.request_id)
    monkeypatch.setattr(decoder, "evaluate", evaluate_but_once)
    requests.append(request_of(6, num_words=100))
    send(client, requests[2:])
    events = client.run_until_idle()

    assert [e.request_id for e in events if isinstance(e, RequestFailed)] == ["r2"]
    assert set(finished_in(events)) == {"r4", "r6"}
    hold_to_the_oracle(client, "qwen3_5", requests[1:])


def test_failure_to_decode_text_ends_only_one_request(
    open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_tiny()
    requests = [request_of(number, num_words=20, max_tokens=20) for number in (1, 2, 4)]
    add = ReplyStream.add

    def failing(self: ReplyStream, token_id: int) -> list[TextPiece]:
        if len(self.token_ids) == 3 and self is streams[0]:
            raise ValueError("no such token")
        if self not in streams:
            streams.append(self)
        return add(self, token_id)

    streams: list[ReplyStream] = []
    monkeypatch.setattr(ReplyStream, "add", failing)
    assert_only_the_first_fails(client, requests)
    assert len(streams) == len(requests)


@pytest.mark.slow
def test_fifty_requests_with_random_stops_all_end(open_tiny: OpenTiny) -> None:
    client, choose = open_tiny(max_running=4), random.Random(3)
    requests = [request_of(number, num_words=5, max_tokens=6) for number in range(50)]
    send(client, requests)
    ends: list[str] = []
    places: dict[str, list[int]] = {}
    while len(ends) < len(requests):
        event = client.next_event()
        if isinstance(event, RequestQueued):
            places.setdefault(event.request_id, []).append(event.ahead)
        if isinstance(event, RequestFailed):
            assert event.problem.title == CancelledWaitingError.title
        if isinstance(event, (RequestFinished, RequestFailed)):
            ends.append(event.request_id)
        if choose.random() < 0.1:
            client.send(Cancel(RequestId(f"r{choose.randrange(50)}")))
    client.run_until_idle()

    assert sorted(ends) == sorted(request.request_id for request in requests)
    for ahead in places.values():
        assert ahead == sorted(ahead, reverse=True)
        assert len(ahead) == len({*ahead})
    cache = cache_of(client)
    cache.check_invariants()
    cache.evict_all()
    assert cache.holdings.ledger().total_bytes == 0
