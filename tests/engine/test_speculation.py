"""Replies with verified drafts equal replies without, in tokens, cached state and replayed bits."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import mlx.core as mx
import pytest
from typing_extensions import override

from engine.cache.trees import evaluate
from engine.events import RequestFinished, Shutdown, Submit
from engine.models.adapter import ModelAdapter
from engine.models.rows import MergedRows, RowByRow
from engine.runner import speculation
from engine.runner.next_token import draw_confirmed
from engine.runner.pass_times import PassTimes
from engine.runner.sequence import Sequence as Live
from engine.speculation.pace import MAX_PASS_LEN, Costs, DraftOffer
from engine.types import ConversationId, Request, RequestId, SamplingParams
from tests.fakes.asking import cache_of, reply_of, user
from tests.fakes.drafted_requests import SAMPLINGS, answer, ids_of, request_of
from tests.fakes.engine_fixtures import OpenTiny
from tests.fakes.planted_drafts import PlantedDrafts, plant
from tests.fakes.tables import rest_in_soak
from tests.oracle.verifying import hold_to_the_oracle

# Models whose passes of several tokens have the bits of passes of one token, with MLX's own BLAS.
EXACT = ("qwen3_5", "lfm2", "llama")
# Models whose passes of several tokens round differently. Their replay is exact.
ROUNDED = ("falcon_h1", "mamba2", "gemma3")


def plant_learned(
    monkeypatch: pytest.MonkeyPatch, open_tiny: OpenTiny, requests: Sequence[Request]
) -> dict[str, tuple[int, ...]]:
    """Let the next engines draft the replies to some requests, 40 % of the drafts made wrong.

    Returns:
        The token ids of these replies without drafts.
    """
    drafter = PlantedDrafts(right=0.6)
    plant(monkeypatch, drafter)
    wanted = ids_of(answer(open_tiny(), requests))
    drafter.is_learning = False
    return wanted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "right", "looks_ahead"),
    rest_in_soak(
        [
            (name, *how)
            for name, how in product(EXACT, [(0.0, True), (0.7, True), (1.0, True), (0.7, False)])
        ],
        ("qwen3_5", 0.7, True),
        ("lfm2", 0.7, False),
    ),
)
def test_replies_with_drafts_equal_replies_without(
    open_tiny: OpenTiny,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    right: float,
    looks_ahead: bool,
) -> None:
    requests = [request_of(number, max_tokens=24) for number in range(len(SAMPLINGS))]
    drafter = PlantedDrafts(right)
    plant(monkeypatch, drafter)
    plain = ids_of(answer(open_tiny(name, looks_ahead=looks_ahead), requests))
    drafter.is_learning = False
    for together in (False, True):
        client = open_tiny(name, looks_ahead=looks_ahead)
        finished: dict[str, RequestFinished] = {}
        for batch in [requests] if together else [[request] for request in requests]:
            finished |= answer(client, batch)
        usages = [one.usage for one in finished.values()]

        assert ids_of(finished) == plain
        assert sum(usage.drafted_tokens for usage in usages) > 30
        assert (sum(usage.accepted_tokens for usage in usages) > 20) == (right > 0)
        hold_to_the_oracle(client, name, requests)
        cache_of(client).check_invariants()


@pytest.mark.slow
@pytest.mark.parametrize("name", rest_in_soak(ROUNDED, "falcon_h1"))
def test_rounding_of_drafts_is_within_the_tolerance_and_replays_exactly(
    open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    requests = [request_of(number) for number in range(len(SAMPLINGS))]
    drafter = PlantedDrafts(0.7)
    plant(monkeypatch, drafter)
    answer(open_tiny(name), requests)
    drafter.is_learning = False
    client = open_tiny(name)

    finished = answer(client, requests)
    assert all(one.usage.accepted_tokens > 5 for one in finished.values())
    hold_to_the_oracle(client, name, requests)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [RowByRow, MergedRows])
def test_verify_passes_are_recorded_at_their_full_length(
    open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch, kind: type[RowByRow | MergedRows]
) -> None:
    requests = [request_of(number) for number in range(1 if kind is RowByRow else 2)]
    plant_learned(monkeypatch, open_tiny, requests)
    client = open_tiny()
    fed: list[int] = []
    forward = kind.forward

    def noted(
        self: RowByRow | MergedRows, adapter: ModelAdapter, token_ids: list[mx.array]
    ) -> list[mx.array]:
        fed.append(max(row.size for row in token_ids))
        return forward(self, adapter, token_ids)  # type: ignore[arg-type]

    monkeypatch.setattr(kind, "forward", noted)
    answer(client, requests)
    for request in requests:
        hot = cache_of(client).holdings.parked.get(request.conversation_id)
        assert hot is not None
        recorded = [feed.end - feed.start for feed in hot.feeds if not feed.one_by_one]

        verified = [num_tokens for num_tokens in fed if num_tokens > 1]
        at = len(recorded) - len(verified)
        assert len(verified) > 3
        assert any(recorded[i:][: len(verified)] == verified for i in range(at + 1))


@pytest.mark.slow
def test_verify_pass_that_raises_for_two_replies_is_made_for_each_alone(
    open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = [request_of(number) for number in range(2)]
    wanted = plant_learned(monkeypatch, open_tiny, requests)
    client = open_tiny()
    num_failed = 0
    forward = MergedRows.forward

    def broken(
        self: MergedRows, adapter: ModelAdapter, token_ids: list[mx.array]
    ) -> list[mx.array]:
        nonlocal num_failed
        if max(row.size for row in token_ids) > 1 and num_failed < 3:
            num_failed += 1
            raise RuntimeError("a planted error")
        return forward(self, adapter, token_ids)

    monkeypatch.setattr(MergedRows, "forward", broken)
    finished = answer(client, requests)

    assert num_failed == 3
    assert ids_of(finished) == wanted
    hold_to_the_oracle(client, "qwen3_5", requests)


@pytest.mark.slow
def test_draw_that_raises_after_a_verify_pass_fails_only_its_reply(
    open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = [request_of(number) for number in range(2)]
    wanted = plant_learned(monkeypatch, open_tiny, requests)
    client = open_tiny()

    def broken(sequence: Live, logits: mx.array, drafts: Sequence[int]) -> list[int]:
        if sequence.request.request_id == "r0" and sequence.num_accepted > 2:
            raise RuntimeError("a planted error")
        return draw_confirmed(sequence, logits, drafts)

    with monkeypatch.context() as planted:
        planted.setattr("engine.runner.decoder.draw_confirmed", broken)
        finished = answer(client, requests)

    assert ids_of(finished) == {"r1": wanted["r1"]}
    hold_to_the_oracle(client, "qwen3_5", requests[1:])
    assert ids_of(answer(client, requests[:1])) == {"r0": wanted["r0"]}
    hold_to_the_oracle(client, "qwen3_5", requests[:1])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["qwen3_5", "gemma3"])
def test_replies_with_drafts_are_restored_after_a_restart(
    open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    request = request_of(0)
    drafter = PlantedDrafts(right=0.6)
    plant(monkeypatch, drafter)
    answer(open_tiny(name), [request])
    drafter.is_learning = False
    first = open_tiny(name, disk_folder=tmp_path)
    (reply,) = answer(first, [request]).values()
    first.send(Shutdown())
    first.core.run()
    following = replace(
        request, messages=(*request.messages, reply_of(reply), user("And?")), max_tokens=4
    )
    second = open_tiny(name, disk_folder=tmp_path)
    plan = answer(second, [following])["r0"].usage.plan

    assert reply.usage.accepted_tokens > 2
    assert plan.restored_disk == plan.restored > len(reply.prompt_ids)
    hold_to_the_oracle(second, name, [following])
    second.send(Shutdown())
    second.core.run()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "step"),
    rest_in_soak(product(["qwen3_5", "gemma3"], [1, 4]), ("qwen3_5", 4), ("gemma3", 4)),
)
def test_reply_stopped_at_any_token_continues_with_drafts_as_if_it_was_not_stopped(
    open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch, name: str, step: int
) -> None:
    request = request_of(2)
    drafter = PlantedDrafts(right=0.8)
    plant(monkeypatch, drafter)
    (plain,) = answer(open_tiny(name), [request]).values()
    whole = plain.reply.token_ids
    drafter.is_learning = False
    client = open_tiny(name)
    for stop in range(1, min(len(whole), 14), step):
        chat = ConversationId(f"chat {stop}")
        first = replace(request, conversation_id=chat, stop_after=stop)
        (begun,) = answer(client, [first]).values()
        rest = replace(
            request,
            request_id=RequestId("rest"),
            conversation_id=chat,
            messages=(*request.messages, reply_of(begun)),
            new_messages=frozenset(),
            max_tokens=len(whole) - stop,
        )
        drafter.replies[rest.request_id] = list(whole[stop:])
        (ended,) = answer(client, [rest]).values()

        assert tuple(begun.reply.token_ids) == tuple(whole[:stop])
        assert tuple(ended.reply.token_ids) == tuple(whole)
        hold_to_the_oracle(client, name, [first])


@pytest.mark.slow
def test_answers_with_and_without_drafts_share_passes(open_tiny: OpenTiny) -> None:
    # A greedy reply of a small random model repeats itself, so its own tokens give drafts.
    with_drafts, without = (
        replace(request_of(number), sampling=SamplingParams(temperature=0.0), max_drafts=most)
        for number, most in ((0, 7), (3, 0))
    )
    client = open_tiny("deep_llama")
    finished = answer(client, [with_drafts, without])

    assert finished["r0"].usage.drafted_tokens > 0
    assert finished["r3"].usage.drafted_tokens == 0
    hold_to_the_oracle(client, "llama", [with_drafts, without])


def test_drafts_from_an_earlier_version_of_a_reply_end_before_its_end_token(
    open_tiny: OpenTiny,
) -> None:
    # The template's text after the first reply begins with an end token.
    cut = request_of(0, max_tokens=6)
    again = replace(request_of(0, max_tokens=16), request_id=RequestId("again"))
    client = open_tiny("llama")
    first, second = (answer(client, [one])[one.request_id] for one in (cut, again))

    assert second.reply.token_ids[:6] == first.reply.token_ids
    assert second.usage.accepted_tokens > 2
    hold_to_the_oracle(client, "llama", [again])


def test_drafter_knows_the_time_of_a_prompt_that_is_read_beside(
    open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[float] = []

    class Noting(PlantedDrafts):
        @override
        def note_beside(self, seconds: float) -> None:
            noted.append(seconds)

    plant(monkeypatch, Noting(right=0.5))
    client = open_tiny(cell_len=32, stride_len=64)
    first, long = request_of(0, max_tokens=30), request_of(1)
    long = replace(long, messages=(user("A list of boats. " * 40),), max_tokens=1)
    client.send(Submit(first, time.perf_counter()))
    client.send(Submit(long, time.perf_counter()))
    client.run_until_idle()

    assert noted[-1] == 0.0
    assert max(noted) > 0.0


def test_measured_durations_count_from_the_next_reply_on(
    open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[float] = []
    choose = speculation.choose

    def noted(
        offers: Sequence[Sequence[DraftOffer]], costs: Costs, extra: float
    ) -> list[DraftOffer | None]:
        measured.append(costs.one_s)
        return choose(offers, costs, extra)

    monkeypatch.setattr(speculation, "choose", noted)
    client = open_tiny("deep_llama")
    request = replace(request_of(0), sampling=SamplingParams(temperature=0.0), max_drafts=None)
    answer(client, [request])
    first = list(measured)
    answer(client, [request])

    assert len(first) > 3
    assert set(first) == {0.0}
    assert len({*measured[len(first) :]}) == 1
    assert measured[-1] > 0.0


def test_durations_of_passes_that_raise_an_error_leave_no_caches(
    open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_tiny("llama")
    assert client.core.model is not None
    adapter = client.core.model.adapter
    evaluate([adapter.forward([1], adapter.new_caches())])  # makes the arrays that a model keeps
    times, before = PassTimes(adapter), mx.get_active_memory()

    def fail(*_: object) -> mx.array:
        raise RuntimeError("a planted error")

    while 1 not in times.seconds:
        assert times.measure()
    with monkeypatch.context() as planted:
        planted.setattr(ModelAdapter, "run", fail)
        with pytest.raises(RuntimeError):
            times.measure()

    assert mx.get_active_memory() <= before
    assert list(times.seconds) == [1]


def test_durations_of_passes_are_measured_once_in_idle_time(
    open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[dict[int, float]] = []
    measure = PassTimes.measure

    def noted(self: PassTimes) -> bool:
        is_left = measure(self)
        measured.append(dict(self.seconds))
        return is_left

    monkeypatch.setattr(PassTimes, "measure", noted)
    client = open_tiny(idle_work=True)
    client.run_until_idle()
    num_steps = len(measured)
    client.run_until_idle()

    assert len(measured) == num_steps
    # passes_timed_once: each length has two passes.
    assert num_steps == 2 * MAX_PASS_LEN + 2, "a step has more than one pass"
    assert sorted(measured[-1]) == list(range(1, MAX_PASS_LEN + 1))
    assert min(measured[-1].values()) > 0.0
