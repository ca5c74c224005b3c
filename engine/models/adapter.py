"""Create caches and run forward passes, in the same way for every model of mlx-lm.

All results are lazy arrays: MLX computes them when they are evaluated. Use on the engine thread.
"""

# mlx.utils has few type annotations.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from inspect import signature
from pathlib import Path
from typing import Any, cast

import mlx.core as mx
from mlx import nn
from mlx.utils import tree_flatten
from mlx_lm.models.cache import make_prompt_cache

from engine.cache.positions import ConversationCaches, shift_of
from engine.cache.trees import tree_bytes
from engine.chat.pictures import PictureTokens
from engine.errors import PictureError, TokenizerError
from engine.models.attention import begin_pass
from engine.models.mtp import DrawDraft, HeadState, ModelWithHead
from engine.models.quantised_kv import KvQuantisation, quantise
from engine.picture_ids import has_pictures, picture_spans, position_shift
from engine.vision.seeing import Vision
from engine.vision.tower import EncodedPicture


class ModelAdapter:
    """A loaded model of any architecture that mlx-lm supports."""

    def __init__(self, model: nn.Module, quantisation: KvQuantisation | None = None) -> None:
        self._model: Any = model
        self.quantisation = quantisation
        self._vision: Vision | None = None

    def quantising(self, quantisation: KvQuantisation | None) -> ModelAdapter:
        """Return an adapter of the same model that quantises K/V. None: this adapter."""
        return self if quantisation is None else ModelAdapter(self._model, quantisation)

    def see(
        self,
        folder: Path,
        config: Mapping[str, Any],
        tokens: PictureTokens,
        picture_folder: Path | None,
    ) -> Vision:
        """Let the model see pictures. The arguments are those of Vision."""
        self._vision = Vision(self._model, folder, config, tokens, picture_folder)
        return self._vision

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
        return ConversationCaches(
            quantise(caches, self.quantisation) if self.quantisation else caches
        )

    def forward(self, token_ids: Sequence[int], caches: list[object]) -> mx.array:
        """Feed tokens to the model, as the continuation of the tokens in the caches.

        Returns:
            Lazy logits of the last token, of shape (V,).

        Raises:
            TokenizerError, PictureError: as in `feed`.
        """
        return self.feed(token_ids, caches)[-1]

    def feed(self, token_ids: Sequence[int], caches: list[object]) -> mx.array:
        """Feed tokens and pictures to the model, as the continuation of the tokens in the caches.

        A picture gets passes of its own, and so does the text between two pictures.

        Returns:
            Lazy logits of shape (L, V).

        Raises:
            TokenizerError: the model has no embedding for a token id. MLX would read memory outside
                the embeddings.
            PictureError: the picture of ids is not known, or its file is missing or damaged.
        """
        logits: list[mx.array] = []
        done = 0
        for picture in picture_spans(token_ids):
            if picture.start > done:
                logits.append(self._feed_text(token_ids[done : picture.start], caches))
            logits.append(self._feed_picture(token_ids[picture.start : picture.end], caches))
            done = picture.end
        if done < len(token_ids) or not logits:
            logits.append(self._feed_text(token_ids[done:] if done else token_ids, caches))
        return logits[0] if len(logits) == 1 else mx.concatenate(logits)

    def _feed_text(self, token_ids: Sequence[int], caches: list[object]) -> mx.array:
        if min(token_ids, default=0) < 0 or max(token_ids, default=0) >= self.vocab_size:
            raise TokenizerError(
                f"It gave the token {max(token_ids)}, "
                f"but the model knows {self.vocab_size:,} tokens."
            )
        return self.run(mx.array([token_ids], mx.int32), caches)[0]

    def _feed_picture(self, token_ids: Sequence[int], caches: list[object]) -> mx.array:
        if self._vision is None:
            raise PictureError.of_blind_model()
        logits: list[mx.array] = []
        for part in self._vision.take(token_ids).parts():
            if logits:
                begin_pass(caches)
            logits.append(self.read_picture(part, caches)[0])
        cast("ConversationCaches", caches).shift = shift_of(caches) + position_shift(token_ids)
        return mx.concatenate(logits)

    def read_picture(self, picture: EncodedPicture, caches: Sequence[object]) -> mx.array:
        """Feed a picture or a part of it to one row. Return lazy logits of shape (1, L, V)."""
        with self.placed(shift_of(caches), picture):
            inputs = self.inputs_of(picture)
            return self._model(stand_in_ids(picture), cache=caches, **inputs)

    def inputs_of(self, picture: EncodedPicture) -> dict[str, mx.array]:
        """Return the arguments that give a picture to the model, beside those of its context.

        The dictionary is empty if the model takes no embeddings. Then the context has them.
        """
        kind: Any = type(self._model)
        if "input_embeddings" not in signature(kind.__call__).parameters:
            return {}
        return {"input_embeddings": picture.all_embeddings(self._model)}

    def placed(
        self, shift: int, picture: EncodedPicture | None = None
    ) -> AbstractContextManager[None]:
        """Return a context in which a pass is built. See Vision.placed."""
        if self._vision is None:
            return nullcontext()
        return self._vision.placed(shift, picture)

    def encode(self, token_ids: Sequence[int], seconds: float) -> Sequence[mx.array] | None:
        """Begin with the embeddings of the picture that the next call of `feed` will feed.

        seconds: longest time to wait for its file.

        Returns:
            Lazy arrays, each of which depends only on those before it. () if there is no picture.
            None if its file is not read yet.

        Raises:
            PictureError: as in `feed`.
        """
        if self._vision is None or not has_pictures(token_ids):
            return ()
        return self._vision.encode(token_ids, seconds)

    def can_feed(self, token_ids: Sequence[int]) -> bool:
        """Return True if all pictures of token_ids are known."""
        return all(
            self._vision is not None and self._vision.knows(token_ids[span.start : span.end])
            for span in picture_spans(token_ids)
        )

    def run(self, input_ids: mx.array, caches: Sequence[object]) -> mx.array:
        """Feed L tokens to each of B rows (conversations).

        Args:
            input_ids: token ids of shape (B, L).
            caches: the caches of one row, or the merged caches of all rows, made by rows.py.

        Returns:
            Lazy logits of shape (B, L, V).
        """
        with self.placed(shift_of(caches)):
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
        with self.placed(state.shift):
            return self._model.drafts(token_id, state, num_drafts, draw)

    @cached_property
    def vocab_size(self) -> int:
        """Number of token ids that the model has embeddings and logits for: V."""
        return self.run(mx.array([[0]], mx.int32), self.new_caches()).shape[-1]

    @property
    def weight_bytes(self) -> int:
        return tree_bytes(self._model.parameters())


def stand_in_ids(picture: EncodedPicture) -> mx.array:
    """Return token ids for the pass of a picture, of shape (1, L).

    mlx-lm's models use the ids only for their number, and for layers of their own.
    """
    return mx.zeros((1, picture.num_tokens), mx.int32)
