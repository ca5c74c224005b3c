"""Drafts are verified when they are worth their time, and never lose more than a bounded share."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from engine.speculation.pace import HEAD, MAX_PASS_LEN, Costs, DraftOffer, Pace, choose
from tests.fakes import pass_curves
from tests.fakes.tables import rest_in_soak

# Duration of a pass by its length on several devices, in passes of one token.
# A CPU in float32, as measured with OpenBLAS: longer passes can be faster.
CURVES = {**pass_curves.CURVES, "CPU": (1, 1.08, 1.3, 1.03, 1.3, 1.42, 1.38, 1.36)}
MATCH_LENS = (2, 3, 4, 6, 9, 12)


def counts(offers: list[list[DraftOffer]], costs: Costs) -> list[int]:
    """Return the numbers of drafts that are verified."""
    return [offer.num_drafts if offer is not None else 0 for offer in choose(offers, costs)]


def time_of(curve: tuple[float, ...], script: list[tuple[int, int, int]]) -> tuple[float, int]:
    """Return the time of a reply and its number of tokens.

    Each item of the script is a step: match length, drafts on offer, and drafts that are right.
    """
    pace, costs = Pace(), Costs(1, curve)
    time, tokens = 0.0, 0
    for match_len, num_drafts, num_right in script:
        (count,) = counts([[DraftOffer(pace, match_len, num_drafts)] if num_drafts else []], costs)
        accepted = min(count, num_right)
        pace.note_step()
        if count:
            gain = accepted - costs.loss(count + 1)
            pace.note_drafts(match_len, count, accepted, gain=gain)
        time += costs.relative[count]
        tokens += 1 + accepted
    return time, tokens


steps = st.tuples(st.sampled_from(MATCH_LENS), st.integers(0, MAX_PASS_LEN - 1), st.integers(0, 7))


@settings(max_examples=100)
@given(st.lists(steps, min_size=1, max_size=300), st.sampled_from(sorted(CURVES)))
def test_any_sequence_of_outcomes_loses_at_most_the_share_and_the_first_trials(
    script: list[tuple[int, int, int]], name: str
) -> None:
    curve = CURVES[name]
    time, tokens = time_of(curve, script)

    assert time <= tokens + 0.02 * len(script) + len(MATCH_LENS) * (max(curve) - 1) + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("name", rest_in_soak(CURVES, "MoE", "CPU"))
def test_wrong_drafts_cost_at_most_the_share_of_a_long_reply(name: str) -> None:
    time, tokens = time_of(CURVES[name], [(2, 7, 0)] * 5000)

    assert time <= tokens * 1.021


@pytest.mark.parametrize("name", CURVES)
def test_right_drafts_of_long_matches_are_verified_at_full_length(name: str) -> None:
    curve = CURVES[name]
    time, tokens = time_of(curve, [(12, 7, 7)] * 1000)

    assert tokens / time > 0.98 * MAX_PASS_LEN / min(curve[-1], MAX_PASS_LEN)


@pytest.mark.slow
def test_drafts_are_verified_again_soon_after_the_text_gets_predictable() -> None:
    bad, good = [(4, 7, 0)] * 1000, [(4, 7, 7)] * 300
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


def test_costs_of_idle_passes_count_until_a_step_was_measured() -> None:
    idle = {1: 0.010, 2: 0.011, 4: 0.015, 8: 0.03}
    costs = Costs.of(1, {1: 0.020, 2: 0.030}, None, idle)

    assert costs.relative[1] == pytest.approx(1.5)
    assert costs.relative[3] == pytest.approx(1.5)
    assert costs.relative[7] == pytest.approx(3.0)
    assert Costs.of(2, {}, None, idle).relative[1] == pytest.approx(1.5 / 1.1)
    assert Costs.of(16, {}, None, idle) == Costs.of(16, {})


def test_conversation_without_drafts_is_never_given_any() -> None:
    costs = Costs(3, CURVES["M5 Max"])

    assert counts([[], [DraftOffer(Pace(), 12, 3)], []], costs) == [0, 3, 0]
    assert counts([[], []], costs) == [0, 0]


def test_more_drafts_are_worth_it_if_a_step_takes_time_beside_its_pass() -> None:
    costs = Costs(1, CURVES["before M3"])
    offers = [[DraftOffer(Pace(), 9, 7)]]
    (alone,), (beside,) = choose(offers, costs), choose(offers, costs, extra=5.0)

    assert (alone.num_drafts if alone else 0) < (beside.num_drafts if beside else 0)


head_steps = st.tuples(steps, st.integers(0, MAX_PASS_LEN - 1))


@pytest.mark.slow
@settings(max_examples=80)
@given(
    st.lists(head_steps, min_size=1, max_size=300),
    st.sampled_from(sorted(CURVES)),
    st.sampled_from([0.02, 0.15, 1.0]),
)
def test_index_and_head_together_lose_at_most_the_share_and_the_first_trials(
    script: list[tuple[tuple[int, int, int], int]], name: str, drafting: float
) -> None:
    curve = CURVES[name]
    pace, costs = Pace(), Costs(1, curve, drafting)
    time, tokens = 0.0, 0
    for (match_len, num_drafts, num_right), head_right in script:
        offers = [DraftOffer(pace, HEAD, MAX_PASS_LEN - 1)]
        if num_drafts:
            offers.append(DraftOffer(pace, match_len, num_drafts))
        (chosen,) = choose([offers], costs)
        pace.note_step()
        time, tokens = time + 1.0, tokens + 1
        if chosen is not None:
            is_head = chosen.match_len == HEAD
            accepted = min(chosen.num_drafts, head_right if is_head else num_right)
            loss = costs.loss(chosen.num_drafts + 1)
            if is_head:
                pace.note_drafting(chosen.drafting_time(costs))
            pace.note_drafts(chosen.match_len, chosen.num_drafts, accepted, gain=accepted - loss)
            time += costs.relative[chosen.num_drafts] - 1.0 + chosen.drafting_time(costs)
            tokens += accepted

    first_trials = len(MATCH_LENS) * (max(curve) - 1) + max(curve) - 1 + 7 * drafting
    assert time <= tokens + 0.02 * len(script) + first_trials + 1e-6


def test_head_that_is_right_is_used_and_one_that_is_wrong_is_switched_off() -> None:
    costs = Costs(1, CURVES["M4 Pro"], 0.1)
    for accepted_share, least, most in ((1.0, 2.0, 8.0), (0.0, 0.0, 0.11)):
        pace, drafted = Pace(), 0
        for _ in range(1000):
            (chosen,) = choose([[DraftOffer(pace, HEAD, MAX_PASS_LEN - 1)]], costs)
            pace.note_step()
            if chosen is not None:
                drafted += chosen.num_drafts
                right = int(accepted_share * chosen.num_drafts)
                pace.note_drafting(chosen.drafting_time(costs))
                gain = right - costs.loss(chosen.num_drafts + 1)
                pace.note_drafts(HEAD, chosen.num_drafts, right, gain=gain)

        assert least <= drafted / 1000 <= most


def test_steps_that_wait_in_vain_use_up_the_time_for_trials() -> None:
    pace, costs, trial = Pace(), Costs(1, CURVES["M4 Pro"]), 0
    for _ in range(400):
        (count,) = counts([[DraftOffer(pace, 2, 1)]], costs)
        pace.note_step()
        if count:
            trial += 1
            pace.note_waiting(2)

    assert 1 < trial <= 400 * 0.02 / 0.1 + 2


def test_first_trial_that_is_not_worth_it_is_free_only_for_one_conversation() -> None:
    costs = Costs(1, CURVES["before M3"])
    offers = [[DraftOffer(Pace(), 2, 1)]]

    assert counts(offers, costs) == [1]
    assert counts([*offers, []], Costs(2, CURVES["before M3"])) == [0, 0]
