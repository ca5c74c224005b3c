"""A pass that is built under watch says what each layer's attention gives."""

from __future__ import annotations

import mlx.core as mx
import pytest

from engine.cache.layout import Leaves
from engine.cache.trees import evaluate
from engine.models.attention import watched
from engine.models.loader import load_model
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.tiny_model import Template

TOKENS = list(range(20))


@pytest.mark.parametrize(("name", "has_attention"), [("qwen3_5", True), ("mamba2", False)])
def test_every_layer_with_kv_is_seen_and_nothing_changes(
    tiny_model: TinyModel, name: str, *, has_attention: bool
) -> None:
    adapter = load_model(tiny_model(name, Template.KEEPING), lambda _done, _total: None).adapter
    caches = adapter.new_caches()
    with watched() as attended:
        logits = adapter.forward(TOKENS, caches)
    layers = Leaves.of(caches).kv
    assert set(attended) == {id(layer) for layer in layers}
    assert bool(attended) is has_attention
    assert all(output.shape[-2] == len(TOKENS) for output in attended.values())

    evaluate(list(attended.values()))
    assert mx.array_equal(logits, adapter.forward(TOKENS, adapter.new_caches())).item()
    assert set(attended) == {id(layer) for layer in layers}
