from __future__ import annotations

from dataclasses import replace

import pytest

from app.cli.processed import ProcessedTokens
from app.cli.tree import report
from app.cli.tree.measure import StepCost, measure, total
from app.cli.tree.scenario import TreeStep, chat_tree

COST = StepCost(
    step="turn 1",
    chat="A",
    thinking=True,
    prompt_tokens=100,
    cached_tokens=60,
    redo=30,
    replayed=35,
    output_tokens=4,
    ttft_ms=5.0,
    cold_ttft_ms=10.0,
    peak_bytes=3_000_000,
)
STOPPED = replace(
    COST, step="stop", prompt_tokens=None, cached_tokens=None, redo=None, replayed=None
)


class Clockwork:
    """A fake engine: `cold_ms` are the times of its cold requests, `done` records all calls."""

    def __init__(self, cold_ms: list[float]) -> None:
        self.cold_ms = cold_ms
        self.done: list[str] = []

    def warm_up(self) -> None:
        self.done.append("warm up")

    def play(self, step: TreeStep) -> StepCost:
        self.done.append(step.name)
        return replace(COST, step=step.name, cold_ttft_ms=None)

    def cold_ttft_ms(self, step: TreeStep, nonce: str) -> float:
        self.done.append(nonce)
        return self.cold_ms[len(self.done) % len(self.cold_ms)]


def test_processed_tokens_add_returns_the_longest_known_prefix() -> None:
    processed = ProcessedTokens()

    assert processed.add([1, 2, 3, 4]) == 0
    assert processed.add([1, 2, 9]) == 2
    assert processed.add([1, 2, 9, 4]) == 3
    assert processed.add([1, 2, 3, 4]) == 4
    assert processed.add([2, 3, 4]) == 0


def test_shares_divide_by_the_prompt_and_by_the_cold_time() -> None:
    assert COST.ttft_share == 0.5
    assert COST.fed_share == 0.4
    assert STOPPED.fed_share is None
    assert replace(COST, cold_ttft_ms=None).ttft_share is None


def test_hidden_share_is_the_time_not_explained_by_fed_tokens() -> None:
    secretive = replace(COST, cached_tokens=95, ttft_ms=9.0)

    assert COST.hidden_share == pytest.approx(0.1)
    assert secretive.hidden_share == pytest.approx(0.85)
    assert total([COST, secretive, STOPPED]).worst_hidden_share == pytest.approx(0.85)


def test_cold_requests_run_after_all_steps_and_report_their_median() -> None:
    engine = Clockwork([1.0, 50.0, 2.0])
    scenario = chat_tree("x", size=0.01)

    costs = list(measure(engine, scenario, cold_times=3))

    num = len(scenario.steps)
    assert engine.done[: num + 1] == ["warm up", *(step.name for step in scenario.steps)]
    assert len(set(engine.done)) == 1 + num + 3 * num
    assert {cost.cold_ttft_ms for cost in costs} == {2.0}


def test_cold_every_limits_cold_requests_to_some_steps() -> None:
    engine = Clockwork([1.0])

    costs = list(measure(engine, chat_tree("x", size=0.01), cold_times=1, cold_every=5))

    measured = [index for index, cost in enumerate(costs) if cost.cold_ttft_ms is not None]
    assert measured == [0, 5, 10, 15, 20]


def test_ttft_share_without_cold_requests_is_none() -> None:
    costs = list(measure(Clockwork([1.0]), chat_tree("x", size=0.01), cold_times=0))

    assert {cost.ttft_share for cost in costs} == {None}
    assert total(costs).ttft_share is None


def test_totals_skip_unknown_figures() -> None:
    both = total([COST, STOPPED, replace(COST, redo=2, peak_bytes=5_000_000)])
    unknown = total([STOPPED])

    assert (both.steps, both.prompt_tokens, both.fed_tokens) == (3, 200, 80)
    assert (both.redo, both.replayed) == (32, 70)
    assert (both.ttft_share, both.peak_bytes) == (0.5, 5_000_000)
    assert (unknown.redo, unknown.fed_tokens) == (None, None)


def test_tables_have_a_cell_for_every_step_and_engine() -> None:
    table = report.comparison({"one": [COST, STOPPED], "other": [replace(COST, redo=0), STOPPED]})

    assert "30 / 35 / 0.500" in table
    assert "0 / 35 / 0.500" in table
    assert "- / - / 0.500" in table
    for row in (report.row(COST), report.row(STOPPED), report.total_row([COST, STOPPED])):
        assert "30" in row or "-" in row
