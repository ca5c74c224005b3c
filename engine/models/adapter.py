"""Create caches and run forward passes, in the same way for every model of mlx-lm.

All results are lazy arrays: MLX computes them when they are evaluated. Use on the engine thread.
"""

# mlx.utils has few type annotations.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast

import mlx.core as mx
from mlx import nn
from mlx.utils import tree_flatten
from mlx_lm.models.cache import make_prompt_cache

from engine.cache.trees import tree_bytes
from engine.errors import TokenizerError
from engine.models.mtp import DrawDraft, HeadState, ModelWithHead
from engine.models.quantised_kv import KvQuantisation, quantise


class ModelAdapter:
    """A loaded model of any architecture that mlx-lm supports."""

    def __init__(self, model: nn.Module, quantisation: KvQuantisation | None = None) -> None:
        self._model: Any = model
        self.quantisation = quantisation

    def quantising(self, quantisation: KvQuantisation | None) -> ModelAdapter:
        """Return an adapter of the same model that quantises K/V. None: this adapter."""
        return self if quantisation is None else ModelAdapter(self._model, quantisation)

    @property
    def form(self) -> list[str]:
        """The names, shapes and types of the parameters."""
        parameters = cast("list[tuple[str, mx.array]]", tree_flatten(self._model.parameters()))
        return sorted(f"{name} {array.shape} {array.dtype}" for name, array in parameters)

    def new_caches(self) -> list[object]:
        """Return empty caches for one conversation, one per layer.

        If K/V quantisation is on, the caches quantise the attention K/V that they store.
        """
        caches = cast("list[object]", make_prompt_cache(self._model))
        return quantise(caches, self.quantisation) if self.quantisation else caches

    def forward(self, token_ids: Sequence[int], caches: list[object]) -> mx.array:
        """Feed tokens to the model, as the continuation of the tokens in the caches.

        Returns:
            Lazy logits of the last token, of shape (V,).

        Raises:
            TokenizerError: the model has no embedding for a token id. MLX would read memory outside
                the embeddings.
        """
        if min(token_ids, default=0) < 0 or max(token_ids, default=0) >= self.vocab_size:
            raise TokenizerError(
                f"It gave the token {max(token_ids)}, but the model knows {self.vocab_size:,} tokens."
            )
        return self.run(mx.array([token_ids], mx.int32), caches)[0, -1]

    def run(self, input_ids: mx.array, caches: Sequence[object]) -> mx.array:
        """Feed L tokens to each of B rows (conversations).

        Args:
            input_ids: token ids of shape (B, L).
            caches: the caches of one row, or the merged caches of all rows, made by rows.py.

        Returns:
            Lazy logits of shape (B, L, V).
        """
        return self._model(input_ids, cache=caches)

    def send_ahead(self, token_ids: Sequence[int], caches: Sequence[object]) -> bool:  # noqa: ARG002 — used by models in stages
        """Let other stages begin with tokens that the next call of `forward` will feed.

        Returns:
            True if there are other stages. The caller must then feed exactly these tokens next, or
            cut the caches.
        """
        return False

    @property
    def has_head(self) -> bool:
        """True if the model has a multi-token prediction head that can draft."""
        return isinstance(self._model, ModelWithHead)

    def drafts(
        self, token_id: int, state: HeadState, num_drafts: int, draw: DrawDraft
    ) -> list[mx.array]:
        """Return the drafts of the model's head as lazy scalars. See ModelWithHead.drafts."""
        return self._model.drafts(token_id, state, num_drafts, draw)

    @cached_property
    def vocab_size(self) -> int:
        """Number of token ids that the model has embeddings and logits for: V."""
        return self.run(mx.array([[0]], mx.int32), self.new_caches()).shape[-1]

    @property
    def weight_bytes(self) -> int:
        return tree_bytes(self._model.parameters())
