"""Fixtures of the tests about models in several stages."""

from __future__ import annotations

from typing import Any, cast

import mlx.core as mx
import pytest

from engine.runner import decoder
from engine.runner.next_token import draw_next
from engine.runner.sequence import Sequence as Answer
from tests.fakes.seeing_engine import cat, dog, open_seeing, seeing_model

__all__ = ["cat", "dog", "drawn_from", "open_seeing", "seeing_model"]

Bits = list[bytes]


@pytest.fixture
def drawn_from(monkeypatch: pytest.MonkeyPatch) -> Bits:
    """Return a list to which the bytes of all logits are added that tokens are drawn from."""
    bits: Bits = []

    def noting(answer: Answer, logits: mx.array, drafts: Any = ()) -> mx.array:
        bits.append(bytes(memoryview(cast("Any", mx.contiguous(logits.astype(mx.float32))))))
        return draw_next(answer, logits, drafts)

    monkeypatch.setattr(decoder, "draw_next", noting)
    return bits
