"""The probe at loading: can the state of a model's caches be taken out and put back?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import pytest
from mlx import nn
from mlx_lm.models.cache import (
    CacheList,
    ChunkedKVCache,
    ConcatenateKVCache,
    KVCache,
    QuantizedKVCache,
    RotatingKVCache,
)
from typing_extensions import override

from engine.cache.layout import leaves_of
from engine.models.adapter import ModelAdapter
from engine.models.probe import StateError, find_quantisation, probe
from engine.models.quantised_kv import KvQuantisation, quantise
from tests.architectures.configs.every import CONFIGS
from tests.fakes.tiny_model import make_model


class Summing(nn.Module):
    """A model that adds up all tokens in its one cache."""

    def __init__(self, cache: type[Any]) -> None:
        super().__init__()
        self._cache = cache

    def make_cache(self) -> list[object]:
        return [self._cache()]

    @override
    def __call__(self, token_ids: mx.array, cache: list[Any]) -> mx.array:
        return cache[0].add(token_ids)[..., None] * mx.arange(1, 33)


class Sums:
    """A cache of a kind that mlx-lm does not have: no state, no setter, arrays written in place."""

    def __init__(self) -> None:
        self.total = mx.zeros(1)
        self.history: list[dict[str, mx.array | None]] = []

    def add(self, token_ids: mx.array) -> mx.array:
        sums = self.total + mx.cumsum(token_ids, axis=-1)
        self.total[:] = sums[:, -1]
        self.history.append({"last": sums[:, -1], "nothing": None})
        return sums + len(self.history)


class _HiddenSum:
    total = 0.0


class HidingSums(Sums):
    """A cache that keeps part of its state in an object that the probe cannot inspect."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = _HiddenSum()

    @override
    def add(self, token_ids: mx.array) -> mx.array:
        self.hidden.total += 1.0
        return super().add(token_ids) + self.hidden.total


class MiscountingSums(Sums):
    """A cache whose offset counts passes instead of tokens."""

    offset = 0

    @override
    def add(self, token_ids: mx.array) -> mx.array:
        self.offset += 1
        return super().add(token_ids)


class ReadingAhead(nn.Module):
    """A model that adds the newest token of a pass to the keys of all tokens of this pass."""

    def make_cache(self) -> list[object]:
        return [KVCache()]

    @override
    def __call__(self, token_ids: mx.array, cache: list[Any]) -> mx.array:
        mixed = token_ids[:, None, :, None] + token_ids[:, None, -1:, None] * mx.ones(32)
        keys, _ = cache[0].update_and_fetch(mixed, mixed)
        return mx.cumsum(keys, axis=2)[:, 0, -token_ids.shape[1] :]


class LlamaWith(nn.Module):
    """A tiny Llama that uses caches of a given class in place of its own."""

    def __init__(self, cache: Callable[[], object]) -> None:
        super().__init__()
        self.model: Any = tiny("llama")
        self._cache = cache

    def make_cache(self) -> list[object]:
        return [self._cache() for _ in self.model.layers]

    @override
    def __call__(self, token_ids: mx.array, cache: list[object]) -> mx.array:
        return self.model(token_ids, cache=cache)


def tiny(name: str) -> nn.Module:
    return make_model(CONFIGS[name] | {"vocab_size": 32})


def test_cache_of_an_unknown_kind_is_auxiliary_state() -> None:
    layout = probe(ModelAdapter(Summing(Sums)))

    assert (layout.num_kv, layout.num_aux) == (0, 1)
    assert layout.needs_snapshot


def test_model_whose_kv_depend_on_later_tokens_is_refused() -> None:
    with pytest.raises(StateError, match="K/V of the same tokens"):
        probe(ModelAdapter(ReadingAhead()))


@pytest.mark.parametrize("cache", [HidingSums, MiscountingSums])
def test_cache_whose_state_cannot_be_put_back_is_refused(cache: type[object]) -> None:
    with pytest.raises(StateError):
        probe(ModelAdapter(Summing(cache)))


@pytest.mark.parametrize(
    ("cache", "is_kv"),
    [
        (KVCache, True),
        (lambda: QuantizedKVCache(group_size=32), True),
        (ConcatenateKVCache, False),
        (lambda: RotatingKVCache(max_size=6), False),
        (lambda: RotatingKVCache(max_size=6, keep=2), False),
        (lambda: ChunkedKVCache(6), False),
    ],
)
def test_every_cache_class_of_mlx_lm_passes_the_probe(
    cache: Callable[[], object], is_kv: bool
) -> None:
    layout = probe(ModelAdapter(LlamaWith(cache)))

    assert (layout.num_kv, layout.num_aux) == ((2, 0) if is_kv else (0, 2))


def test_snapshot_bytes_count_every_window_as_full() -> None:
    narrow = probe(ModelAdapter(LlamaWith(lambda: RotatingKVCache(max_size=100))))
    wide = probe(ModelAdapter(LlamaWith(lambda: RotatingKVCache(max_size=1000))))

    # 2 layers, keys and values, 1 head of 32 values, 4 bytes each (float32)
    assert narrow.snapshot_bytes == 100 * 2 * 2 * 32 * 4
    assert wide.snapshot_bytes == 10 * narrow.snapshot_bytes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "group_sizes"),
    [
        ("llama", (32, 32)),
        ("qwen3_5", (0, 32)),  # a recurrent layer and an attention layer
        ("afm7", (32, 0)),  # later layers have no cache: they read the last cache
        ("deepseek_v3", (0, 0)),  # its attention needs K/V as plain arrays
        ("falcon_h1", (0, 32, 0, 32)),  # each layer has a recurrent cache and a K/V cache
        ("minimax_m3_vl", (32, 0, 0, 0, 0)),  # later layers have K/V and an index
    ],
)
def test_kv_are_quantised_where_attention_supports_it(
    name: str, group_sizes: tuple[int, ...]
) -> None:
    model = tiny(name)
    quantisation = find_quantisation(ModelAdapter(model), 8)
    caches = ModelAdapter(model, quantisation).new_caches()

    assert quantisation == KvQuantisation(8, group_sizes)
    kinds = [isinstance(leaf, QuantizedKVCache) for leaf in leaves_of(caches)]
    assert kinds == [size > 0 for size in group_sizes]
    probe(ModelAdapter(model, quantisation))


def test_members_of_a_cache_list_are_quantised() -> None:
    (pair,) = quantise([CacheList(KVCache(), KVCache())], KvQuantisation(4, (0, 64)))

    assert isinstance(pair, CacheList)
    assert [type(leaf) for leaf in leaves_of([pair])] == [KVCache, QuantizedKVCache]
