"""A model that only fills its caches: mlx-lm's own cache objects, in real models' proportions.

For what depends on how many bytes are held and not on what is in them; the smallest real hybrid
takes a hundred times as long.
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

# Numbers in a token's keys, and in its values.
_WIDTH = 8


class SizedAdapter(ModelAdapter):
    """K/V for every token and a state as large as the K/V of `state_tokens` tokens (0: none)."""

    def __init__(self, vocab_size: int, state_tokens: int) -> None:
        super().__init__(nn.Module())
        self._state_tokens = state_tokens
        # The same for every token: whoever asks for them need not wait for the device.
        self._logits = mx.zeros((1, 1, vocab_size))
        mx.eval(self._logits)

    @override
    def new_caches(self) -> list[object]:
        return [KVCache(), ArraysCache(1)] if self._state_tokens else [KVCache()]

    @override
    def run(self, input_ids: mx.array, caches: Sequence[object]) -> mx.array:
        filler = mx.zeros((1, 1, input_ids.shape[1], _WIDTH))
        cast("KVCache", caches[0]).update_and_fetch(filler, filler)
        for cache in cast("list[ArraysCache]", caches[1:]):
            # A new array at every step, as a recurrent layer makes.
            cache[0] = mx.zeros((1, 2 * _WIDTH * self._state_tokens))
        return self._logits


def load_sized(*, state_tokens: int, template: Template = Template.KEEPING) -> LoadedModel:
    """A sized model with the tiny models' tokenizer."""
    with tempfile.TemporaryDirectory() as folder:
        model = load_model(build_tiny("llama", Path(folder), template), lambda _done, _total: None)
    adapter = SizedAdapter(model.vocab_size, state_tokens)
    return replace(model, adapter=adapter, layout=probe(adapter))
