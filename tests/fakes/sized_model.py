"""A model that computes nothing and only fills mlx-lm's cache objects, in realistic proportions.

For tests that check the size of a cache and not its contents. The smallest real hybrid model takes
a hundred times as long.
"""

# mlx-lm's caches are untyped.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import mlx.core as mx
from mlx import nn
from mlx_lm.models.cache import ArraysCache, KVCache
from typing_extensions import override

from engine.models.adapter import ModelAdapter
from engine.models.loader import LoadedModel, load_model
from engine.models.probe import probe
from tests.fakes.tiny_model import Template, build_tiny

# Number of elements in the keys of one token, and in its values.
_WIDTH = 8


class SizedAdapter(ModelAdapter):
    """An adapter with K/V for each token and a recurrent state, both filled with zeros.

    The state is as large as the K/V of `state_tokens` tokens. If `state_tokens` is 0, the adapter
    has no state.
    """

    def __init__(self, vocab_size: int, state_tokens: int) -> None:
        super().__init__(nn.Module())
        self._state_tokens = state_tokens
        # Every forward pass returns this array. It is evaluated already, so its reader never waits
        # for the device.
        self._logits = mx.zeros((1, 1, vocab_size))
        mx.eval(self._logits)
        self.vocab_size = 1 << 31  # the model has no embeddings, so every token id is allowed

    @override
    def new_caches(self) -> list[object]:
        return [KVCache(), ArraysCache(1)] if self._state_tokens else [KVCache()]

    @override
    def run(self, input_ids: mx.array, caches: Sequence[object]) -> mx.array:
        filler = mx.zeros((1, 1, input_ids.shape[1], _WIDTH))
        cast("KVCache", caches[0]).update_and_fetch(filler, filler)
        for cache in cast("list[ArraysCache]", caches[1:]):
            # Make a new array in each pass, as a real recurrent layer does.
            cache[0] = mx.zeros((1, 2 * _WIDTH * self._state_tokens))
        return self._logits


def load_sized(*, state_tokens: int, template: Template = Template.KEEPING) -> LoadedModel:
    """Return a loaded model with a SizedAdapter and the tokenizer of the tiny models."""
    with tempfile.TemporaryDirectory() as folder:
        model = load_model(build_tiny("llama", Path(folder), template), lambda _done, _total: None)
    adapter = SizedAdapter(model.vocab_size, state_tokens)
    return replace(model, adapter=adapter, layout=probe(adapter))
