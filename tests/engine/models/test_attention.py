"""Attention gives the same bits in blocks as in one go. `watched` collects the blocks by layer."""

from __future__ import annotations

from itertools import product

import mlx.core as mx
import pytest

from engine.cache.layout import Leaves
from engine.cache.trees import evaluate
from engine.models import attention
from engine.models.attention import Watched, begin_pass, watched
from engine.models.loader import load_model
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template

TOKENS = list(range(20))
MORE_TOKENS = list(range(100))


@pytest.mark.parametrize(("name", "has_attention"), [("qwen3_5", True), ("mamba2", False)])
def test_watched_pass_has_every_kv_layer_and_the_same_logits(
    tiny_model: TinyModel, name: str, *, has_attention: bool
) -> None:
    adapter = load_model(tiny_model(name, Template.KEEPING), lambda _done, _total: None).adapter
    caches = adapter.new_caches()
    with watched() as found:
        logits = adapter.forward(TOKENS, caches)
    layers = Leaves.of(caches).kv
    blocks = found.blocks
    assert set(blocks) == {id(layer) for layer in layers}
    assert bool(blocks) is has_attention
    assert all(one[0].shape[2] == len(TOKENS) for one in blocks.values())

    evaluate(list(blocks.values()))
    assert mx.array_equal(logits, adapter.forward(TOKENS, adapter.new_caches())).item()
    assert set(blocks) == {id(layer) for layer in layers}


@pytest.mark.parametrize(
    ("name", "kv_bits"),
    rest_in_soak(
        product(("qwen3_5", "llama", "gemma3"), (None, 8)), ("gemma3", None), ("llama", 8)
    ),
)
def test_attention_in_blocks_gives_the_same_bits(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch, name: str, kv_bits: int | None
) -> None:
    """The compared pass follows another pass, and feeds more tokens than gemma3's window holds."""
    folder = tiny_model(name, Template.KEEPING)
    adapter = load_model(folder, lambda _done, _total: None, kv_bits=kv_bits).adapter
    whole, divided = adapter.new_caches(), adapter.new_caches()
    for caches in (whole, divided):
        adapter.forward(TOKENS, caches)
    expected = adapter.forward(MORE_TOKENS, whole)

    monkeypatch.setattr(attention, "_MAX_SCORES_CPU", 1000)
    monkeypatch.setattr(attention, "_MAX_SCORES_GPU", 1000)
    with watched() as found:
        logits = adapter.forward(MORE_TOKENS, divided)
    assert mx.array_equal(logits, expected).item()
    for blocks in found.blocks.values():
        assert len(blocks) > 1
        assert sum(block.shape[2] for block in blocks) == len(MORE_TOKENS)


def test_parts_of_the_first_of_two_passes_are_its_own_arrays(tiny_model: TinyModel) -> None:
    adapter = load_model(tiny_model("llama", Template.KEEPING), lambda _done, _total: None).adapter
    alone, caches = adapter.new_caches(), adapter.new_caches()
    adapter.forward(TOKENS, alone)
    expected = [array for part in Watched().parts(alone) for array in part]
    with watched() as found:
        adapter.forward(TOKENS, caches)
        begin_pass(caches)
        adapter.forward(MORE_TOKENS, caches)
    first = [
        array for part in found.parts(caches)[: len(found.parts(caches)) // 2] for array in part
    ]
    # The buffers are longer than both passes, so the second writes into the arrays of the first.
    kept = [array for array in first if array.shape[-2:] == expected[0].shape[-2:]]
    assert len(kept) == len(expected)
    assert all(mx.array_equal(*pair).item() for pair in zip(kept, expected, strict=True))
    evaluate(found.parts(caches))
