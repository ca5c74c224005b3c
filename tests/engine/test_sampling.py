"""Draws of tokens are reproducible and independent. The filters equal those of mlx-lm."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import mlx.core as mx
from hypothesis import given, settings, strategies as st

from engine.models.filters import make_filter
from engine.sampling.draw import draw, mix
from engine.types import SamplingParams

LOGITS = mx.array([2.0, 1.0, 0.5, -1.0, -3.0])


def tokens(seed: int, count: int) -> list[object]:
    log_probs = LOGITS - mx.logsumexp(LOGITS)
    return [draw(log_probs, temperature=1.0, seed=seed, index=i).item() for i in range(count)]


def test_draw_depends_on_seed_and_index_alone() -> None:
    first = tokens(1, 50)
    mx.random.seed(99)
    mx.random.normal((7,))

    assert tokens(1, 50) == first
    assert tokens(2, 50) != first


def test_draws_follow_the_probabilities() -> None:
    drawn = tokens(3, 2000)
    wanted = mx.softmax(LOGITS)
    for token_id in range(3):
        share = drawn.count(token_id) / len(drawn)
        assert abs(share - wanted[token_id].item()) < 0.04


def test_draw_at_temperature_zero_takes_the_largest_logit() -> None:
    for temperature in (0.0, -0.1):
        assert draw(LOGITS, temperature=temperature, seed=5, index=0).item() == 0


@settings(deadline=None)
@given(st.integers(0, 1 << 40), st.integers(0, 1 << 20))
def test_mixed_keys_are_64_bit_and_differ_by_index(seed: int, index: int) -> None:
    assert 0 <= mix(seed, index) < 1 << 64
    assert mix(seed, index) != mix(seed, index + 1)


def nothing() -> mx.array:
    raise AssertionError("recent tokens are read without a penalty")


def test_top_k_and_top_p_remove_unlikely_tokens() -> None:
    cut = make_filter(SamplingParams(top_p=1.0, top_k=2), vocab_size=5)
    kept = [bool(x > -1e9) for x in cut(nothing, LOGITS, index=0).tolist()]  # type: ignore[union-attr]

    assert kept == [True, True, False, False, False]
    narrow = make_filter(SamplingParams(top_p=0.5), vocab_size=5)
    assert sum(x > -1e9 for x in narrow(nothing, LOGITS, index=0).tolist()) == 1  # type: ignore[union-attr,misc]


def test_repetition_penalty_applies_to_recent_tokens() -> None:
    penalise = make_filter(SamplingParams(top_p=1.0, repetition_penalty=10.0), vocab_size=5)
    plain = make_filter(SamplingParams(top_p=1.0), vocab_size=5)

    def recent() -> mx.array:
        return mx.array([0])

    assert mx.argmax(plain(recent, LOGITS, index=0)).item() == 0
    assert mx.argmax(penalise(recent, LOGITS, index=0)).item() == 1
    assert LOGITS[0].item() == 2.0


def kept_by(params: SamplingParams, index: int = 0, spared_ids: tuple[int, ...] = ()) -> list[bool]:
    logits = make_filter(params, 5, spared_ids)(nothing, LOGITS, index=index)
    return [float(str(x)) > -1e9 for x in cast("list[float]", logits.tolist())]


def test_min_p_keeps_at_least_min_kept_tokens() -> None:
    params = SamplingParams(top_p=1.0, min_p=0.99)
    assert sum(kept_by(params)) == 1
    assert sum(kept_by(replace(params, min_kept=3))) == 3


def test_xtc_removes_likely_tokens_except_the_last_and_spared_ones() -> None:
    params = SamplingParams(top_p=1.0, xtc_probability=1.0, xtc_threshold=0.05)
    probabilities = cast("list[float]", mx.softmax(LOGITS).tolist())
    likely = [index for index, one in enumerate(probabilities) if one > 0.05]
    assert len(likely) > 2
    last = min(likely, key=probabilities.__getitem__)
    gone = set(likely) - {last}
    assert {index for index, keeps in enumerate(kept_by(params)) if not keeps} == gone
    spared = next(iter(gone))
    assert kept_by(params, spared_ids=(spared,))[spared]


def test_xtc_applies_at_random_and_equally_for_the_same_seed() -> None:
    params = SamplingParams(top_p=1.0, xtc_probability=0.3, xtc_threshold=0.05, seed=7)
    cuts = [not all(kept_by(params, index)) for index in range(200)]
    assert 30 < sum(cuts) < 90
    assert cuts == [not all(kept_by(params, index)) for index in range(200)]
    assert cuts != [not all(kept_by(replace(params, seed=8), index)) for index in range(200)]
