"""The stored traces of tests/benchmarks/eviction.py, and a short run of one of them."""

from __future__ import annotations

import json

import pytest

from engine.cache.ranking import CoverageRanking
from tests.benchmarks.eviction import (
    SEEDS,
    STATE_TOKENS,
    TRACES,
    LruOfPaths,
    PlainLru,
    TraceWriter,
    play,
    with_texts,
)
from tests.fakes.sized_model import load_sized


@pytest.mark.parametrize("seed", SEEDS)
def test_stored_trace_equals_the_one_written_from_its_seed(seed: int) -> None:
    lines = (TRACES / f"trace-{seed}.jsonl").read_text(encoding="utf-8").splitlines()

    assert [json.loads(line) for line in lines] == TraceWriter(seed).write()


@pytest.mark.soak
def test_coverage_ranking_feeds_fewer_tokens_than_lru() -> None:
    model = load_sized(state_tokens=STATE_TOKENS)
    steps = list(with_texts("trace-1", TraceWriter(1).write()[:45]))
    free = play(model, steps, CoverageRanking, 1 << 62)
    budget = free.working_set_bytes // 2
    ours, lru, paths = (
        play(model, steps, policy, budget) for policy in (CoverageRanking, PlainLru, LruOfPaths)
    )

    assert free.tokens_fed < ours.tokens_fed
    assert ours.tokens_fed < 0.9 * min(lru.tokens_fed, paths.tokens_fed)
    assert max(ours.held_bytes, lru.held_bytes) <= budget
