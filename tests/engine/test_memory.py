"""The budget of the cache: from device memory, under memory pressure, and while an answer grows."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import mlx.core as mx
import pytest

from app.cli.client import load_model
from engine.cache import kv
from engine.cache.trees import evaluate
from engine.cache_figures import NOTHING_CACHED, CacheStatistics
from engine.config import EngineConfig
from engine.events import RequestFailed, RequestFinished, Submit
from engine.memory import (
    MACHINE,
    MemoryWatch,
    cache_budget,
    freed_bytes,
    freed_limit,
    spare_bytes,
    working_set_bytes,
)
from engine.types import ConversationId, FinishReason, ForcedReply, Request, RequestId
from tests.fakes.asking import ask, cache_of, reply_of, user
from tests.fakes.engine_fixtures import OpenTiny, TinyModel
from tests.fakes.inline_engine import InlineClient
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template

GB = 10**9


@dataclass
class FakeComputer:
    """The memory and the clock of a computer, set by the test."""

    available: int
    total: int = 16 * GB
    now: float = 0.0


@dataclass
class FakeBudgetedCache:
    """A cache that holds a given number of bytes and records the budget that it is given."""

    held: int
    budget: int | None = None

    def statistics(self) -> CacheStatistics:
        return replace(NOTHING_CACHED, total_bytes=self.held)

    def set_budget(self, budget_bytes: int, /) -> None:
        self.budget = budget_bytes


def test_cache_budget_is_the_spare_memory_of_the_device() -> None:
    config = EngineConfig(device_bytes=12 * GB, head_room_bytes=2 * GB, least_budget_bytes=GB)

    assert cache_budget(config, 5 * GB) == 5 * GB
    assert cache_budget(config, 11 * GB) == GB
    assert spare_bytes(config, 5 * GB) == 7 * GB
    assert spare_bytes(config, 13 * GB) == 0
    assert cache_budget(EngineConfig(cache_budget_bytes=0), GB) == 0
    limited = replace(config, most_budget_bytes=2 * GB)
    assert cache_budget(limited, 5 * GB) == 2 * GB
    assert cache_budget(limited, 11 * GB) == GB
    assert spare_bytes(EngineConfig(), 1) == working_set_bytes() - 1


def test_budget_shrinks_by_missing_memory_and_regrows_slowly() -> None:
    config = EngineConfig(
        scarce_memory=0.1, ample_memory=0.2, regrowth=0.25, memory_check_s=5, least_budget_bytes=GB
    )
    machine = FakeComputer(available=8 * GB)
    watch = MemoryWatch(config, 8 * GB, machine=lambda: machine, clock=lambda: machine.now)

    def look(available: float, held: int, after: float = 5) -> int | None:
        """Let the watch look at the memory. Return the new budget, or None if it stays."""
        machine.available, machine.now = int(available), machine.now + after
        cache = FakeBudgetedCache(held)
        before: list[int | None] = []
        watch.adjust_budget(cache, lambda: before.append(cache.budget))
        assert before == ([] if cache.budget is None else [None])
        return cache.budget

    assert look(8 * GB, 6 * GB) is None  # memory is ample
    assert look(0.6 * GB, 6 * GB, after=4) is None  # memory_check_s has not passed yet
    assert look(0.6 * GB, 6 * GB, after=1) == 5 * GB  # the 6 GB held, less the missing 1 GB
    assert look(1.6 * GB, 5 * GB) is None  # memory is neither scarce nor ample
    assert look(0.1 * GB, 2 * GB) == GB  # at least least_budget_bytes
    assert look(3.2 * GB, GB) == 3 * GB
    assert [look(9 * GB, GB) for _ in range(4)] == [5 * GB, 7 * GB, 8 * GB, None]


def open_with(tiny_model: TinyModel, config: EngineConfig, name: str = "qwen3_5") -> InlineClient:
    client = InlineClient(config)
    load_model(client, tiny_model(name, Template.KEEPING), lambda _: None)
    return client


def test_engine_evicts_state_while_memory_is_short(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = FakeComputer(available=8 * GB)
    monkeypatch.setattr("psutil.virtual_memory", lambda: machine)
    config = EngineConfig(
        use_openblas=False, idle_work=False, memory_check_s=0, least_budget_bytes=1, regrowth=1
    )
    client = open_with(tiny_model, config)
    before = ask(client, user("one"))
    full = cache_of(client).statistics()
    machine.available = 0
    client.run_until_idle()
    short = cache_of(client).statistics()
    machine.available = 8 * GB
    client.run_until_idle()

    assert full.total_bytes > 0
    assert (short.total_bytes, short.budget_bytes) == (0, 1)
    assert cache_of(client).statistics().budget_bytes == full.budget_bytes
    assert ask(client, user("one")).content == before.content


def test_limit_of_the_memory_holds_at_once_and_can_be_lifted(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("psutil.virtual_memory", lambda: FakeComputer(available=8 * GB))
    client = open_with(
        tiny_model, EngineConfig(use_openblas=False, idle_work=False, least_budget_bytes=1)
    )
    before = ask(client, user("one"))
    full = cache_of(client).statistics()
    client.set_memory(1)
    reported = client.answer(client.report_cache())
    client.run_until_idle()
    limited = cache_of(client).statistics()
    again = ask(client, user("one"))
    client.set_memory(None)
    client.run_until_idle()

    assert full.total_bytes > 0
    assert reported.statistics.budget_bytes == 1
    assert (limited.total_bytes, limited.budget_bytes) == (0, 1)
    assert again.content == before.content
    assert cache_of(client).statistics().budget_bytes == full.budget_bytes


def test_limit_of_the_memory_does_not_raise_a_budget_that_scarce_memory_lowered() -> None:
    machine = FakeComputer(available=8 * GB)
    config = EngineConfig(memory_check_s=0, least_budget_bytes=1, regrowth=1)
    watch = MemoryWatch(config, 8 * GB, machine=lambda: machine, clock=lambda: machine.now)
    machine.available = 0
    cache = FakeBudgetedCache(3 * GB)
    watch.adjust_budget(cache)
    lowered = cache.budget
    assert lowered is not None
    watch.set_full(6 * GB, cache, lambda: None)
    assert cache.budget == lowered
    watch.set_full(lowered // 2, cache, lambda: None)
    assert cache.budget == lowered // 2


def test_configured_budget_stays_while_memory_is_short(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("psutil.virtual_memory", lambda: FakeComputer(available=0))
    config = EngineConfig(use_openblas=False, cache_budget_bytes=1 << 30, memory_check_s=0)
    client = open_with(tiny_model, config)
    ask(client, user("one"))

    assert cache_of(client).statistics().budget_bytes == 1 << 30


def request(text: str, **options: object) -> Submit:
    return Submit(
        Request(
            request_id=RequestId("r"),
            conversation_id=ConversationId("A"),
            messages=(user(text),),
            new_messages=frozenset({0}),
            **options,  # type: ignore[arg-type]
        ),
        time.perf_counter(),
    )


def test_prompt_beyond_device_memory_is_refused_before_it_starts(tiny_model: TinyModel) -> None:
    config = EngineConfig(
        use_openblas=False,
        device_bytes=int(6.4 * GB),
        pass_bytes=int(9.1 * GB),
        cell_len=32,
        stride_len=32,
    )
    client = open_with(tiny_model, config)
    client.send(request("word " * 40))
    (failed,) = client.run_until_idle()

    assert isinstance(failed, RequestFailed)
    assert failed.problem.cause == f"It needs about 9.1 GB and {MACHINE} can give 6.4 GB."
    assert "smaller model" in failed.problem.advice
    assert ask(client, user("ok")).usage.plan.restored == 0


@pytest.mark.slow
def test_answer_ends_when_device_memory_is_used_up(tiny_model: TinyModel) -> None:
    probe = open_with(tiny_model, EngineConfig(use_openblas=False), "llama").core.model
    assert probe is not None
    num_tokens = 640
    device = probe.facts.weight_bytes + kv.roomy(num_tokens) * probe.layout.kv_bytes_per_token
    config = EngineConfig(use_openblas=False, device_bytes=device, pass_bytes=0)
    client = open_with(tiny_model, config, "llama")
    client.send(request("go", max_tokens=2000, forced=ForcedReply(text="word " * 600)))
    finished = client.run_until_idle()[-1]

    assert isinstance(finished, RequestFinished)
    assert finished.reason is FinishReason.LENGTH
    assert num_tokens <= len(finished.prompt_ids) + finished.usage.output_tokens < num_tokens + 256


def test_pin_and_unpin_reach_the_cache_of_a_model_loaded_later(tiny_model: TinyModel) -> None:
    config = EngineConfig(use_openblas=False, cache_budget_bytes=1 << 30, idle_work=False)
    client = InlineClient(config)
    client.pin(frozenset({ConversationId("A")}))
    load_model(client, tiny_model("qwen3_5", Template.KEEPING), lambda _: None)
    pinned = set(cache_of(client).holdings.pinned)
    client.pin(frozenset())
    client.run_until_idle()

    assert pinned == {"A"}
    assert cache_of(client).holdings.pinned == set()


@pytest.mark.parametrize("budget", rest_in_soak([0, 1, 200_000], 0, 200_000))
def test_tiny_budget_changes_no_answer(open_tiny: OpenTiny, budget: int) -> None:
    roomy, tight = open_tiny(), open_tiny(cache_bytes=budget)
    turn = [user("one thing")]
    for text in ("and another", "the last one"):
        answers = [ask(client, *turn) for client in (roomy, tight)]
        turn += [reply_of(answers[0]), user(text)]

        assert answers[0].content == answers[1].content
    assert cache_of(tight).holdings.ledger().total_bytes <= budget


@pytest.mark.slow
@pytest.mark.parametrize("num_words", rest_in_soak([100, 300, 700], 300))
def test_prompt_larger_than_parked_caches_stays_in_the_budget(
    open_tiny: OpenTiny, num_words: int
) -> None:
    client = open_tiny()
    first = ask(client, user("one thing"))
    ask(client, user("something else"), chat="B")
    cache = cache_of(client)
    cache.set_budget(cache.holdings.ledger().total_bytes + 1_000_000)
    ask(client, user("one thing"), reply_of(first), user("word " * num_words))

    cache.check_invariants()
    assert cache.holdings.ledger().total_bytes <= cache.statistics().budget_bytes


def test_freed_limit_is_a_share_of_the_weights_within_two_bounds() -> None:
    config = EngineConfig(freed_share=0.25, least_freed_bytes=GB, most_freed_bytes=3 * GB)

    assert [freed_limit(config, size * GB) for size in (1, 8, 20)] == [GB, 2 * GB, 3 * GB]


def test_loaded_model_limits_the_freed_buffers(tiny_model: TinyModel) -> None:
    config = EngineConfig(use_openblas=False, cache_budget_bytes=1 << 30, least_freed_bytes=1 << 20)
    open_with(tiny_model, config, "llama")
    for number in range(1, 40):
        evaluate(mx.zeros((number, 16384)))

    assert 0 < freed_bytes() <= 1 << 20


def test_idle_engine_returns_freed_buffers_after_some_seconds(open_tiny: OpenTiny) -> None:
    client = open_tiny("llama", release_after_s=0.05, memory_check_s=0.02)
    busy = open_tiny("llama", release_after_s=60.0)
    ask(busy, user("one"))
    after_answer = freed_bytes()
    ask(client, user("one"))
    while freed_bytes():
        # No command comes. The engine wakes up without one.
        client.core.step(wait=True)

    assert after_answer > 0
    assert not client.core.step(wait=False)
    assert cache_of(client).statistics().total_bytes > 0
