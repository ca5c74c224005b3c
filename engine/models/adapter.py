"""One uniform face of mlx-lm's models: fresh caches and a forward pass. Engine thread only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import mlx.core as mx
from mlx import nn
from mlx_lm.models.cache import make_prompt_cache

from engine.cache.trees import tree_bytes
from engine.models.quantised_kv import KvQuantisation, quantise


class ModelAdapter:
    """A loaded model of any architecture that mlx-lm builds."""

    def __init__(self, model: nn.Module, quantisation: KvQuantisation | None = None) -> None:
        self._model: Any = model
        self._quantisation = quantisation

    def new_caches(self) -> list[object]:
        """One empty cache object a layer, as the model wants them; K/V quantised where that is on."""
        caches = cast("list[object]", make_prompt_cache(self._model))
        return quantise(caches, self._quantisation) if self._quantisation else caches

    def forward(self, token_ids: Sequence[int], caches: list[object]) -> mx.array:
        """Feed token_ids after what caches hold; lazy.

        Returns:
            Logits of the last position, (V,).
        """
        return self.run(mx.array([token_ids], mx.int32), caches)[0, -1]

    def forward_rows(self, token_ids: mx.array, caches: Sequence[object]) -> mx.array:
        """Feed one token to every row; lazy.

        Args:
            token_ids: (B,)
            caches: of B rows, see rows.py.

        Returns:
            Logits (B, V).
        """
        return self.run(token_ids[:, None], caches)[:, -1]

    def run(self, input_ids: mx.array, caches: Sequence[object]) -> mx.array:
        """The model itself: ids (B, L) to logits (B, L, V); lazy."""
        return self._model(input_ids, cache=caches)

    @property
    def weight_bytes(self) -> int:
        return tree_bytes(self._model.parameters())
