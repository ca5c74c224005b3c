"""Audits recompute stored resume points and drop a wrong one, so that the next answer is right."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import mlx.core as mx
import pytest

from engine.cache.prefix_cache import PrefixCache
from engine.cache.radix import ancestry
from engine.cache.trees import map_arrays
from engine.checking.audit import AuditJob
from engine.events import IdleKind, IdleStopped, IdleWorking
from engine.models.adapter import ModelAdapter
from engine.models.loader import LoadedModel
from engine.types import ConversationId
from engine.usage import ReasonKind
from tests.fakes.asking import ask, cache_of, reply_of, user
from tests.fakes.engine_fixtures import OpenTiny
from tests.fakes.inline_engine import InlineClient
from tests.fakes.tables import rest_in_soak

MODELS = ["qwen3_5", "falcon_h1", "mamba2", "gemma3", "llama"]


def start_audit(client: InlineClient, max_tokens: int = 1 << 20) -> AuditJob | None:
    return AuditJob.start(model_of(client), cache_of(client), max_tokens)


def model_of(client: InlineClient) -> LoadedModel:
    assert client.core.model is not None
    return client.core.model


def audit_all(client: InlineClient) -> None:
    """Audit every resume point once, except those that an earlier audit has dropped."""
    for _ in range(len(list(cache_of(client).holdings.tree.nodes()))):
        job = start_audit(client)
        while job is not None and job.step():
            pass
        cache_of(client).check_invariants()


def chat_a_while(client: InlineClient) -> None:
    first = ask(client, user("What is a boat?"))
    second = ask(client, user("What is a boat?"), reply_of(first), user("And a list?"))
    ask(client, user("What is a boat?"), reply_of(first), user("Edited words"))
    cache_of(client).eviction.evict_hot()
    ask(
        client,
        user("What is a boat?"),
        reply_of(first),
        user("And a list?"),
        reply_of(second),
        user("x"),
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", rest_in_soak(MODELS, "qwen3_5", "gemma3"))
def test_audit_of_correct_points_finds_no_fault(open_tiny: OpenTiny, name: str) -> None:
    client = open_tiny(name)
    chat_a_while(client)
    audit_all(client)

    assert cache_of(client).holdings.counters.audits > 3
    assert cache_of(client).holdings.counters.audit_faults == 0


def spoil_states(cache: PrefixCache) -> bool:
    states = [
        n.snapshot
        for n in cache.holdings.tree.nodes()
        if n.snapshot is not None and n.snapshot.states
    ]
    for snapshot in states:
        snapshot.states = tuple(map_arrays(lambda x: x * 1.1, state) for state in snapshot.states)
    return bool(states)


def spoil_kv(cache: PrefixCache) -> bool:
    hot = cache.holdings.parked.get(ConversationId("A"))
    assert hot is not None
    for leaf in hot.leaves.kv:
        leaf.values = map_arrays(mx.zeros_like, leaf.values)
    return bool(hot.leaves.kv)


@pytest.mark.parametrize(
    ("name", "spoil"),
    rest_in_soak(
        product(MODELS, [spoil_states, spoil_kv]),
        ("qwen3_5", spoil_states),
        ("gemma3", spoil_states),
        ("llama", spoil_kv),
    ),
)
def test_audit_drops_a_wrong_point_and_the_answer_is_right(
    open_tiny: OpenTiny, name: str, spoil: Callable[[PrefixCache], bool]
) -> None:
    client = open_tiny(name)
    chat_a_while(client)
    right = ask(client, user("What is a boat?"))
    if not spoil(cache_of(client)):
        pytest.skip("this model has no such state")
    audit_all(client)

    assert cache_of(client).holdings.counters.audit_faults > 0
    again = ask(client, user("What is a boat?"), chat="B")
    assert again.reply.token_ids == right.reply.token_ids


def test_audit_that_finds_a_wrong_ancestor_drops_its_whole_subtree(open_tiny: OpenTiny) -> None:
    client = open_tiny("lfm2")
    chat_a_while(client)
    cache = cache_of(client)
    longest = max(cache.holdings.tree.nodes(), key=lambda node: node.end)
    root = next(node for node in ancestry(longest) if node.parent is None)
    hot = cache.holdings.parked.get(ConversationId("A"))
    assert hot is not None
    for leaf in hot.leaves.kv:
        leaf.values[..., :3, :] = 0.0  # pyright: ignore[reportIndexIssue]
    adapter = model_of(client).adapter
    audit = cache.audits.start(adapter.new_caches, 1 << 20, adapter.can_feed)
    assert audit is not None
    job = AuditJob(model_of(client), cache, longest, audit[1])
    while job.step():
        pass

    assert root not in cache.holdings.tree.nodes()
    cache.check_invariants()


def test_failed_audit_holds_no_memory(open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch) -> None:
    client = open_tiny("lfm2")
    chat_a_while(client)
    before = cache_of(client).holdings.ledger()
    job = start_audit(client)
    assert job is not None

    def fail(*_: object) -> None:
        raise RuntimeError("[malloc] Unable to allocate")

    with monkeypatch.context() as patch:
        patch.setattr(ModelAdapter, "run", fail)
        with pytest.raises(RuntimeError):
            job.step()
    cache_of(client).check_invariants()
    assert cache_of(client).holdings.ledger() == before


def test_turn_after_a_dropped_point_reports_fault_as_reason(open_tiny: OpenTiny) -> None:
    client = open_tiny("lfm2")
    first = ask(client, user("What is a boat?"))
    spoil_states(cache_of(client))
    client.set_idle_work(enabled=True)
    while not cache_of(client).holdings.counters.audit_faults:
        client.core._idler._upkeep._audited_at = -1e9  # pyright: ignore[reportPrivateUsage]
        client.run_until_idle()
    second = ask(client, user("What is a boat?"), reply_of(first), user("And a list?"))

    assert second.usage.plan.reasons[0].kind is ReasonKind.FAULT


def test_audit_skips_points_that_are_too_long_or_in_use(open_tiny: OpenTiny) -> None:
    client = open_tiny()
    assert start_audit(client) is None
    chat_a_while(client)
    shortest = min(node.end for node in cache_of(client).holdings.tree.nodes() if node.snapshot)

    assert start_audit(client, shortest - 1) is None
    job = start_audit(client, shortest)
    assert job is not None
    assert job.total == shortest
    # The running job has locked this resume point, so a second audit of it cannot start.
    assert start_audit(client, shortest) is None
    job.stop()
    assert start_audit(client, shortest) is not None


def test_idle_engine_runs_an_audit(open_tiny: OpenTiny) -> None:
    client = open_tiny("lfm2")
    chat_a_while(client)
    client.set_idle_work(enabled=True)
    client.core._idler._upkeep._audited_at = -1e9  # pyright: ignore[reportPrivateUsage]
    events = client.run_until_idle()

    assert any(isinstance(e, IdleWorking) and e.kind is IdleKind.AUDIT for e in events)
    assert events[-1] == IdleStopped()
    assert cache_of(client).holdings.counters.audits == 1
