"""Recorded logits have one row for each token. A second draw at an index replaces its row."""

from __future__ import annotations

import mlx.core as mx
from typing_extensions import override

from engine.checking.records import RecordedTokens
from engine.runner.drawing import ForcedTokens, TokensBefore


class Before(TokensBefore):
    @override
    def recent(self) -> mx.array:
        raise AssertionError("recent tokens are read without a penalty")

    @override
    def answer_ids(self) -> list[int] | None:
        raise AssertionError("the answer is read without a format")


def test_second_draw_at_an_index_replaces_the_recorded_logits() -> None:
    source = RecordedTokens(ForcedTokens((7, 8, 9), start=2, eos_id=1))
    drawn = [
        source.draw(mx.array([value]), Before(), index=index).item()
        for index, value in ((2, 0.5), (3, 1.5), (4, 2.5), (3, 3.5))
    ]

    assert drawn == [7, 8, 9, 8]
    assert [row.item() for row in source.rows(2, 4)] == [0.5, 3.5]
