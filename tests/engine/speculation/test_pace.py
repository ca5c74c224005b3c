"""Drafts are verified when they are worth their time, and never lose more than a bounded share."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from engine.speculation.pace import MAX_PASS_LEN, Costs, Offer, Pace, choose

# Duration of a pass by its length on several devices, in passes of one token.
CURVES = {
    "M5 Max": (1, 1.06, 1.11, 1.26, 1.42, 1.67, 1.93, 2.2),
    "M4 Pro": (1, 1.1, 1.3, 1.45, 1.7, 1.95, 2.2, 2.45),
    "mixture of experts": (1, 1.59, 1.85, 2.15, 2.44, 2.73, 3.02, 3.32),
    "M1": (1, 1.83, 2.55, 3.26, 3.9, 4.6, 5.28, 6.12),
    "CPU": (1, 1.08, 1.3, 1.03, 1.3, 1.42, 1.38, 1.36),
}
MATCH_LENS = (2, 3, 4, 6, 9, 12)


def counts(offers: list[list[Offer]], costs: Costs) -> list[int]:
    """Return the numbers of drafts that are verified."""
    return [offer.num_drafts if offer is not None else 0 for offer in choose(offers, costs)]


def time_of(curve: tuple[float, ...], script: list[tuple[int, int, int]]) -> tuple[float, int]:
    """Return the time of a reply and its number of tokens.

    Each item of the script is a step: match length, drafts on offer, and drafts that are right.
    """
    pace, costs = Pace(), Costs(1, curve)
    time, tokens = 0.0, 0
    for match_len, num_drafts, num_right in script:
        (count,) = counts([[Offer(pace, match_len, num_drafts)] if num_drafts else []], costs)
        accepted = min(count, num_right)
        pace.note_step()
        if count:
            gain = accepted - costs.loss(count + 1)
            pace.note_drafts(match_len, count, accepted, gain=gain)
        time += costs.relative[count]
        tokens += 1 + accepted
    return time, tokens


steps = st.tuples(st.sampled_from(MATCH_LENS), st.integers(0, MAX_PASS_LEN - 1), st.integers(0, 7))


@settings(max_examples=200)
@given(st.lists(steps, min_size=1, max_size=300), st.sampled_from(sorted(CURVES)))
def test_any_sequence_of_outcomes_loses_at_most_the_share_and_the_first_trials(
    script: list[tuple[int, int, int]], name: str
) -> None:
    curve = CURVES[name]
    time, tokens = time_of(curve, script)

    assert time <= tokens + 0.02 * len(script) + len(MATCH_LENS) * (max(curve) - 1) + 1e-6


@pytest.mark.parametrize("name", CURVES)
def test_wrong_drafts_cost_at_most_the_share_of_a_long_reply(name: str) -> None:
    time, tokens = time_of(CURVES[name], [(2, 7, 0)] * 5000)

    assert time <= tokens * 1.021


@pytest.mark.parametrize("name", CURVES)
def test_right_drafts_of_long_matches_are_verified_at_full_length(name: str) -> None:
    curve = CURVES[name]
    time, tokens = time_of(curve, [(12, 7, 7)] * 1000)

    assert tokens / time > 0.98 * MAX_PASS_LEN / min(curve[-1], MAX_PASS_LEN)


def test_drafts_are_verified_again_soon_after_the_text_gets_predictable() -> None:
    bad, good = [(4, 7, 0)] * 3000, [(4, 7, 7)] * 300
    bad_time, bad_tokens = time_of(CURVES["M4 Pro"], bad)
    time, tokens = time_of(CURVES["M4 Pro"], bad + good)

    assert (tokens - bad_tokens) / (time - bad_time) > 2.0


def test_unknown_costs_are_estimated_from_the_measured_ones() -> None:
    costs = Costs.of(1, {1: 0.010, 4: 0.013, 8: 0.020})

    assert costs.relative[0] == 1.0
    assert costs.relative[3] == pytest.approx(1.3)
    assert costs.relative[1] == pytest.approx(1.1)
    assert costs.relative[7] == pytest.approx(2.0)
    assert Costs.of(1, {}).relative == Costs.of(1, {1: 0.5}).relative
    assert Costs.of(4, {}).relative[1] > Costs.of(1, {}).relative[1]


def test_conversation_without_drafts_is_never_given_any() -> None:
    costs = Costs(3, CURVES["M5 Max"])

    assert counts([[], [Offer(Pace(), 12, 3)], []], costs) == [0, 3, 0]
    assert counts([[], []], costs) == [0, 0]
