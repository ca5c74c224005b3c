"""The layout of a model, found from its cache objects."""

from __future__ import annotations

import sys

import pytest
from mlx_lm.models.cache import (
    ArraysCache,
    CacheList,
    ChunkedKVCache,
    KVCache,
    QuantizedKVCache,
    RotatingKVCache,
)

from engine.cache.layout import Layout, Leaves, is_kv
from engine.cache.prefix_cache import PrefixCache
from tests.fakes.engine_fixtures import OpenTiny

# Key: model. Value: number of K/V caches, number of auxiliary caches.
EXPECTED = {
    "qwen3_5": (1, 1),
    "qwen3_5_moe": (1, 1),
    "lfm2": (1, 2),
    "falcon_h1": (2, 2),
    "mamba2": (0, 4),
    "gemma3": (1, 1),
    "llama": (2, 0),
    "deep_llama": (4, 0),
}


def test_only_caches_that_can_be_cut_at_any_token_are_kv() -> None:
    assert is_kv(KVCache())
    assert is_kv(QuantizedKVCache())
    assert not is_kv(RotatingKVCache(max_size=8))
    assert not is_kv(ChunkedKVCache(8))
    assert not is_kv(ArraysCache(2))


def test_leaves_include_members_of_cache_lists_and_skip_none() -> None:
    leaves = Leaves.of([None, CacheList(ArraysCache(1), KVCache()), KVCache()])

    assert (len(leaves.kv), len(leaves.aux)) == (2, 1)


@pytest.mark.parametrize("name", list(EXPECTED))
def test_layout_of_model_has_expected_counts_and_bytes(open_tiny: OpenTiny, name: str) -> None:
    model = open_tiny(name).core.model
    assert model is not None
    layout = model.layout

    assert (layout.num_kv, layout.num_aux) == EXPECTED[name]
    assert (layout.kv_bytes_per_token > 0) == (layout.num_kv > 0)
    assert (layout.snapshot_bytes > 0) == layout.needs_snapshot
    if name == "llama":
        # 2 layers, keys and values, 2 heads of 16 values, 4 bytes each (float32)
        assert layout.kv_bytes_per_token == 2 * 2 * 2 * 16 * 4


def layout(kv_bytes_per_token: int, snapshot_bytes: int) -> Layout:
    return Layout(
        num_kv=1, num_aux=1, kv_bytes_per_token=kv_bytes_per_token, snapshot_bytes=snapshot_bytes
    )


def test_max_tokens_leave_room_for_one_snapshot() -> None:
    assert [layout(10, 100).max_tokens(num_bytes) for num_bytes in (99, 100, 159)] == [0, 0, 5]
    assert [layout(0, 100).max_tokens(num_bytes) for num_bytes in (99, 100)] == [0, sys.maxsize]


def test_stage_with_the_least_room_decides_how_many_tokens_a_cache_holds() -> None:
    stages = Layout.of_stages([layout(10, 100), layout(20, 0)])
    cache = PrefixCache(stages, budget_bytes=1100, max_hot=1, far_budgets=[800])

    assert cache.max_held == 40
    cache.set_budget(300)
    assert cache.max_held == 20
