"""Replies drafted by a model's head equal replies without, and its state is restored with the rest."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import mlx.core as mx
import pytest

from app.cli.client import load_model
from engine.cache.prefix_cache import PrefixCache
from engine.cache.trees import map_arrays
from engine.catalog.card import ModelSource
from engine.catalog.inspect import read_card
from engine.config import EngineConfig
from engine.errors import OutOfMemoryError
from engine.events import RequestFailed, RequestFinished, Shutdown, Submit
from engine.fitting import FitMeter
from engine.models.adapter import ModelAdapter
from engine.models.loader import load_model as load_model_folder
from engine.runner.decoder import Decoder, StepResult
from engine.types import ConversationId, Request, RequestId, SamplingParams
from tests.engine.checking.test_audit import audit_all
from tests.engine.test_faults import OUT_OF_MEMORY, Tripwire
from tests.fakes import heads
from tests.fakes.asking import cache_of, reply_of, user
from tests.fakes.drafted_requests import SAMPLINGS, answer, ids_of, request_of
from tests.fakes.inline_engine import InlineClient
from tests.fakes.tables import rest_in_soak
from tests.oracle.verifying import hold_to_the_oracle

Build = Callable[..., Path]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Return a function that makes the folder of a model whose head is mostly right, or never.

    Each folder is made once."""

    @cache
    def get(name: str, *, share: float | None) -> Path:
        folder = heads.build(name, tmp_path_factory.mktemp("models") / name)
        if share is None:
            head = heads.random_head(folder)
        else:
            head = heads.agreeing_head(folder, share=share)
        heads.save(folder / "mtp.safetensors", heads.prefixed(head, "mtp."))
        return folder

    return get


def opened(folder: Path, **options: object) -> InlineClient:
    config = EngineConfig(use_openblas=False, idle_work=False, saves_battery=False, **options)  # type: ignore[arg-type]
    client = InlineClient(config)
    load_model(client, folder, lambda _: None)
    return client


REQUESTS = [request_of(number, max_tokens=20) for number in range(len(SAMPLINGS))]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "share", "looks_ahead"),
    rest_in_soak(
        [
            (name, *how)
            for name, how in product(
                heads.TYPES, [(0.0, True), (0.1, True), (None, True), (0.1, False)]
            )
        ],
        ("qwen3_5", None, True),
        ("qwen3_next", 0.1, False),
    ),
)
def test_replies_with_drafts_of_the_head_equal_replies_without(
    build: Build, name: str, share: float | None, looks_ahead: bool
) -> None:
    folder = build(name, share=share)
    plain = [replace(request, max_drafts=0) for request in REQUESTS]
    wanted = ids_of(answer(opened(folder, looks_ahead=looks_ahead), plain))
    for together in (False, True):
        client = opened(folder, looks_ahead=looks_ahead)
        requests = [replace(one, max_drafts=3) for one in REQUESTS[: None if together else 2]]
        finished: dict[str, RequestFinished] = {}
        for batch in [requests] if together else [[request] for request in requests]:
            finished |= answer(client, batch)

        assert ids_of(finished) == {one.request_id: wanted[one.request_id] for one in requests}
        assert sum(one.usage.drafted_tokens for one in finished.values()) > 20
        assert share is None or sum(one.usage.accepted_tokens for one in finished.values()) > 2
        hold_to_the_oracle(client, "qwen3_5", requests)
        cache_of(client).check_invariants()


def chat(number: int, *, max_drafts: int | None) -> Request:
    return replace(
        request_of(number, max_tokens=24),
        sampling=SamplingParams(temperature=0.0),
        max_drafts=max_drafts,
    )


def test_a_head_that_is_always_right_gives_all_drafts(build: Build) -> None:
    client = opened(build("qwen3_5", share=0.0))
    (one,) = answer(client, [chat(0, max_drafts=3)]).values()

    assert one.usage.accepted_tokens == one.usage.drafted_tokens > 10


@pytest.mark.slow
def test_restored_conversation_drafts_at_once_as_if_it_was_not_restored(
    build: Build, tmp_path: Path
) -> None:
    folder = build("qwen3_5", share=0.1)
    request = chat(0, max_drafts=3)
    first = opened(folder, disk_folder=tmp_path)
    (reply,) = answer(first, [request]).values()
    following = replace(
        request,
        request_id=RequestId("following"),
        messages=(*request.messages, reply_of(reply), user("And?")),
    )
    (wanted,) = answer(first, [following]).values()
    first.send(Shutdown())
    first.core.run()
    second = opened(folder, disk_folder=tmp_path)
    (found,) = answer(second, [following]).values()

    assert found.usage.plan.restored_disk > len(reply.prompt_ids)
    assert found.reply.token_ids == wanted.reply.token_ids
    assert found.usage.drafted_tokens == wanted.usage.drafted_tokens > 5
    assert found.usage.accepted_tokens == wanted.usage.accepted_tokens
    hold_to_the_oracle(second, "qwen3_5", [following])
    second.send(Shutdown())
    second.core.run()


@pytest.mark.slow
def test_regenerated_reply_drafts_as_the_first_one_did(build: Build) -> None:
    client = opened(build("qwen3_next", share=0.1))
    (first,) = answer(client, [chat(1, max_drafts=3)]).values()
    again = replace(
        chat(1, max_drafts=3),
        request_id=RequestId("again"),
        conversation_id=ConversationId("a copy without earlier versions"),
    )
    (second,) = answer(client, [again]).values()

    assert second.usage.plan.restored == len(second.prompt_ids)
    assert second.reply.token_ids == first.reply.token_ids
    assert second.usage.accepted_tokens > 0
    hold_to_the_oracle(client, "qwen3_5", [chat(1, max_drafts=3), again])


@pytest.mark.slow
def test_head_that_is_never_right_is_switched_off(build: Build) -> None:
    client = opened(build("qwen3_5", share=None))
    request = replace(chat(0, max_drafts=None), max_tokens=200, sampling=SamplingParams(seed=4))
    (one,) = answer(client, [request]).values()

    assert one.usage.output_tokens > 100
    assert one.usage.drafted_tokens < one.usage.output_tokens / 8


@pytest.mark.slow
def test_head_that_is_right_is_used_without_being_asked_for(build: Build) -> None:
    client = opened(build("qwen3_5", share=0.0))
    request = replace(chat(0, max_drafts=None), max_tokens=120, sampling=SAMPLINGS[1])
    (one,) = answer(client, [request]).values()

    assert one.usage.accepted_tokens > 0


def spoil_hidden(cache: PrefixCache) -> None:
    """Change the hidden state of the head in all snapshots."""
    for node in cache.holdings.tree.nodes():
        if node.snapshot is not None:
            *others, last = node.snapshot.states
            node.snapshot.states = (*others, map_arrays(lambda x: x * 1.1, last))


def spoil_kv(cache: PrefixCache) -> None:
    """Change the K/V of the head in all live caches."""
    for request in REQUESTS:
        hot = cache.holdings.parked.get(request.conversation_id)
        assert hot is not None
        leaf = hot.leaves.kv[-1]
        leaf.values = map_arrays(mx.zeros_like, leaf.values)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("together", "spoil"),
    rest_in_soak(
        product([False, True], [None, spoil_hidden, spoil_kv]),
        (True, None),
        (False, spoil_hidden),
        (True, spoil_kv),
    ),
)
def test_audit_repeats_the_state_of_the_head_after_verified_drafts(
    build: Build, together: bool, spoil: Callable[[PrefixCache], None] | None
) -> None:
    client = opened(build("qwen3_5", share=0.1))
    requests = [replace(one, max_drafts=3) for one in REQUESTS]
    for batch in [requests] if together else [[request] for request in requests]:
        answer(client, batch)
    cache = cache_of(client)
    if spoil is not None:
        spoil(cache)
    audit_all(client)

    assert cache.holdings.counters.audits > (3 if spoil is None else 0)
    assert (cache.holdings.counters.audit_faults > 0) == (spoil is not None)


@pytest.mark.slow
@pytest.mark.parametrize("kv_bits", rest_in_soak([4, 8], 4))
def test_head_with_quantised_kv_drafts_as_well(build: Build, kv_bits: int) -> None:
    client = opened(build("qwen3_5", share=0.0), kv_bits=kv_bits)
    requests = [replace(one, max_drafts=3) for one in REQUESTS]
    finished = answer(client, requests)

    assert sum(one.usage.accepted_tokens for one in finished.values()) > 7
    hold_to_the_oracle(client, "quantised", requests)
    audit_all(client)
    assert cache_of(client).holdings.counters.audit_faults == 0


@pytest.mark.slow
def test_memory_of_a_model_with_head_is_predicted(build: Build) -> None:
    folder = build("qwen3_next", share=None)
    facts = load_model_folder(folder, lambda _done, _total: None).facts
    meter = FitMeter(EngineConfig())
    memory = meter.fit_folder(read_card(folder, ModelSource.FOLDER)).memory
    meter.close()

    assert facts.has_head
    assert (memory.weight_bytes, memory.kv_bytes_per_token, memory.snapshot_bytes) == (
        facts.weight_bytes,
        facts.kv_bytes_per_token,
        facts.snapshot_bytes,
    )


def test_memory_of_a_head_is_freed_with_the_model(build: Build) -> None:
    folder = build("qwen3_5", share=0.1)
    before = mx.get_active_memory()
    client = opened(folder)
    answer(client, [chat(0, max_drafts=3), chat(1, max_drafts=None)])
    client.send(Shutdown())
    client.core.run()
    del client

    assert mx.get_active_memory() - before < 4096


@pytest.mark.slow
def test_head_that_raises_an_error_is_switched_off_and_the_reply_is_the_same(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = build("qwen3_5", share=0.0)
    plain = [replace(request, max_drafts=0) for request in REQUESTS]
    wanted = ids_of(answer(opened(folder), plain))
    num_calls = 0

    def fail(*_: object) -> list[mx.array]:
        nonlocal num_calls
        num_calls += 1
        raise RuntimeError("a planted error")

    monkeypatch.setattr(ModelAdapter, "drafts", fail)
    client = opened(folder)
    found = answer(client, [replace(one, max_drafts=3) for one in REQUESTS])

    assert ids_of(found) == wanted
    assert 1 <= num_calls <= len(REQUESTS)
    cache_of(client).check_invariants()


@pytest.mark.slow
@pytest.mark.parametrize("num_replies", rest_in_soak([1, 2], 2))
def test_full_memory_before_drafts_fails_one_reply_and_leaves_the_head_on(
    build: Build, monkeypatch: pytest.MonkeyPatch, num_replies: int
) -> None:
    client = opened(build("qwen3_5", share=0.0))
    requests = [chat(number, max_drafts=3) for number in range(num_replies)]
    wanted = ids_of(answer(client, requests))
    num_failed = 0
    for fails_at in range(1, 10):
        tripwire = Tripwire(fails_at, OUT_OF_MEMORY)
        with monkeypatch.context() as planted:
            around = tripwire.around(PrefixCache.reserve_tokens)
            planted.setattr(PrefixCache, "reserve_tokens", around)
            for request in requests:
                client.send(Submit(request, time.perf_counter()))
            events = client.run_until_idle()
        finished: dict[str, RequestFinished] = {
            event.request_id: event for event in events if isinstance(event, RequestFinished)
        }
        failed = [event for event in events if isinstance(event, RequestFailed)]

        assert len(finished) + len(failed) == num_replies
        assert {event.problem.title for event in failed} <= {OutOfMemoryError.title}
        assert len(failed) <= 1
        assert ids_of(finished).items() <= wanted.items()
        num_failed += len(failed)
    (after,) = answer(client, [chat(5, max_drafts=3)]).values()

    assert num_failed > 3
    assert after.usage.accepted_tokens == after.usage.drafted_tokens > 10


@pytest.mark.slow
def test_reply_without_drafts_keeps_no_hidden_states_in_memory(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[int] = []
    step = Decoder.step

    def noted(self: Decoder, *args: object) -> list[StepResult]:
        results = step(self, *args)  # type: ignore[arg-type]
        mx.synchronize()
        used.append(mx.get_active_memory())
        return results

    monkeypatch.setattr(Decoder, "step", noted)
    client = opened(build("qwen3_5", share=0.1))
    answer(client, [replace(chat(0, max_drafts=0), max_tokens=150, record_logits=False)])

    assert len(used) > 100
    assert used[-10] - used[50] < 4096
