"""Token sources: a sampled token depends on the draw's arguments, a forced token on its index."""

from __future__ import annotations

import mlx.core as mx
from typing_extensions import override

from engine.models.filters import make_filter
from engine.runner.drawing import ForcedTokens, SampledTokens, TokensBefore, TokenSource
from engine.types import SamplingParams

LOGITS = mx.array([2.0, 1.0, 0.5, -1.0, -3.0])
PARAMS = SamplingParams(temperature=1.0, top_p=0.95, repetition_penalty=1.3, seed=3)


class Before(TokensBefore):
    @override
    def recent(self) -> mx.array:
        return mx.array([0, 1])

    @override
    def answer_ids(self) -> list[int] | None:
        return None


def sampled(params: SamplingParams) -> SampledTokens:
    return SampledTokens(make_filter(params, vocab_size=5), params.temperature, params.seed)


def ids_of(source: TokenSource, indices: range) -> list[object]:
    return [source.draw(LOGITS, Before(), index=index).item() for index in indices]


def test_tokens_sampled_in_reverse_order_are_the_same() -> None:
    forwards = ids_of(sampled(PARAMS), range(40))
    backwards = ids_of(sampled(PARAMS), range(39, -1, -1))

    assert forwards == backwards[::-1]
    assert len(set(forwards)) > 1


def test_forced_reply_is_followed_by_the_end_token() -> None:
    source = ForcedTokens((7, 8), start=3, eos_id=1)

    assert ids_of(source, range(3, 7)) == [7, 8, 1, 1]


def test_forced_token_is_read_after_its_logits_are_computed() -> None:
    logits = mx.ones((1 << 20,)) * 2.0
    token_id = ForcedTokens((7,), start=0, eos_id=1).draw(logits, Before(), index=0)
    before = mx.get_active_memory()

    assert token_id.item() == 7
    assert mx.get_active_memory() > before + logits.nbytes // 2
