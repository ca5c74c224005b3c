"""A part of a model: the model's own forward pass, in which the layers of other stages are skipped.

A skipped layer returns what it is given. The first own layer takes what was received from the stage
before. What the first layer behind the own ones is given is kept for the next stage. All that lies
before and behind (the embedding, the norm, the head, skipped layers) is not evaluated, so its
weights are never read.

The model gets a list with all its caches, because it makes masks and positions from some of them.
In the place of a skipped layer's cache, it gets a cache of the same kind that this stage has, or a
placeholder with the same number of tokens.
"""

# mlx.nn has few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import mlx.core as mx
from mlx import nn
from typing_extensions import override

from engine.cache.layout import is_list, leaves_of
from engine.cache.positions import ConversationCaches, shift_of
from engine.catalog.model_config import text_settings
from engine.chat.pictures import PictureTokens
from engine.models.adapter import ModelAdapter
from engine.pipeline.messages import ArrayForm
from engine.pipeline.paths import Path as ArrayPath, array_paths, with_arrays
from engine.pipeline.trace import LayerCall, LayerTrace, Slot, layers_of, replace_call
from engine.vision.layer_features import num_features
from engine.vision.seeing import Vision
from engine.vision.tower import EncodedPicture


@dataclass(slots=True)
class _Hand:
    """The arrays that one pass of a stage receives and sends."""

    received: Sequence[mx.array] = ()
    sent: tuple[mx.array, ...] = ()


class PartOfModel(ModelAdapter):
    """The layers [start, end) of a model, with caches of these layers only.

    Creating it changes the layers of the model: the model cannot be used whole afterwards.
    """

    def __init__(self, model: nn.Module, trace: LayerTrace, start: int, end: int) -> None:
        super().__init__(model)
        trace.require([cut for cut in (start, end) if 0 < cut < trace.num_layers])
        self.start, self.end, self.num_layers = start, end, trace.num_layers
        self._hand = _Hand()
        self._trace = trace
        self._skip_foreign_layers(model)
        # Positions in the model's list of the caches of own layers.
        self._own = [i for i, users in enumerate(trace.users) if start <= min(users) < end]
        self._foreign = self._all_caches()
        # For each place of the model's list: number of the own cache to show, or None.
        self._shown = _shown(self._foreign, self._own)
        self._width = 0  # hidden size of a model that sees; 0 if it does not
        self._num_features = 0  # number of layers that add features of a picture
        # True if layers get inputs of their own that the model makes from the embeddings.
        self._shares_embeddings = False

    @override
    def see(
        self,
        folder: Path,
        config: Mapping[str, Any],
        tokens: PictureTokens,
        picture_folder: Path | None,
    ) -> Vision:
        text = text_settings(config)
        self._width = cast("int", text["hidden_size"])
        self._num_features = num_features(config)
        self._shares_embeddings = bool(text.get("hidden_size_per_layer_input"))
        return super().see(folder, config, tokens, picture_folder)

    @property
    def takes_embeddings(self) -> bool:
        """True if this stage needs the embeddings of a picture."""
        return not self.start or self._shares_embeddings

    def handed_on(self, picture: EncodedPicture) -> tuple[mx.array, ...]:
        """Return the arrays of a picture that the next stage needs."""
        embeddings = (picture.embeddings,) if self._shares_embeddings else ()
        features = picture.features if self.end < self._num_features else ()
        return (*embeddings, *features)

    @property
    def is_last(self) -> bool:
        """True if the stage has the norm and the head, and gives logits."""
        return self.end == self.num_layers

    @override
    def new_caches(self) -> list[object]:
        """Return empty caches of the own layers for one conversation."""
        every = self._all_caches()
        return ConversationCaches(every[place] for place in self._own)

    def _all_caches(self) -> list[object]:
        return super().new_caches()

    def pass_through(
        self,
        input_ids: mx.array,
        caches: Sequence[object],
        received: Sequence[mx.array],
        num_tokens: int | mx.array,
        picture: EncodedPicture | None = None,
    ) -> tuple[mx.array, tuple[mx.array, ...]]:
        """Run the own layers. Lazy.

        Args:
            input_ids: token ids of shape (B, L).
            caches: caches of the own layers. Those of one row have the shift of its positions.
            received: what the stage before sent. Empty for the first stage.
            num_tokens: number of tokens of each row before the pass.
            picture: the picture that the pass reads; None for text. Its embeddings are used if
                `takes_embeddings` is true.

        Returns:
            The logits, which are of use on the last stage only, and what the next stage receives.
        """
        self._hand.received = received
        try:
            options: dict[str, mx.array] = {}
            if picture is not None and self.takes_embeddings:
                options = self.inputs_of(picture)
            with self.placed(shift_of(caches), picture):
                every = self._with_places(caches, num_tokens)
                logits: mx.array = self._model(input_ids, cache=every, **options)
            return logits, self._hand.sent
        finally:
            self._hand.received, self._hand.sent = (), ()

    def received_forms(self, num_rows: int, num_tokens: int) -> list[ArrayForm]:
        """Return the forms of what this stage receives for a pass of text."""
        if not self.start:
            return []
        crossing = self._trace.crossings[self.start]
        return [
            ArrayForm((num_rows, num_tokens, *shape[2:]), dtype)
            for shape, dtype in zip(crossing.shapes, crossing.dtypes, strict=True)
        ]

    def picture_forms(self, num_tokens: int) -> list[ArrayForm]:
        """Return the forms of what this stage receives for the pass of a picture.

        After what its first layer takes, these are the embeddings, if this stage or a later one
        needs them, and the features, if one of these stages adds them.
        """
        embedded = [ArrayForm((1, num_tokens, self._width), mx.float32)] * self.takes_embeddings
        number = self._num_features if self.start < self._num_features else 0
        features = [ArrayForm((num_tokens, self._width), mx.float32)] * number
        return [*self.received_forms(1, num_tokens), *embedded, *features]

    def stand_in(self, num_tokens: int) -> list[mx.array]:
        """Return zeros in the form of what this stage receives for one row of num_tokens tokens."""
        return [mx.zeros(form.shape, form.dtype) for form in self.received_forms(1, num_tokens)]

    def _with_places(self, caches: Sequence[object], num_tokens: int | mx.array) -> list[object]:
        every: list[object] = []
        for shown, foreign in zip(self._shown, self._foreign, strict=True):
            if shown is None:
                _stand_at(foreign, num_tokens)
            every.append(foreign if shown is None else caches[shown])
        return every

    def _skip_foreign_layers(self, model: nn.Module) -> None:
        for index, layer in enumerate(layers_of(model)):
            if not self.start <= index < self.end:
                replace_call(layer, self._skipping(index))
            elif index == self.start and self.start:
                replace_call(layer, self._receiving())

    def _receiving(self) -> LayerCall:
        """Return the call of the first own layer, which takes what was received."""
        taken, hand = self._trace.crossings[self.start].taken, self._hand

        def call(own: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            arrays = dict(zip(taken, hand.received, strict=True))
            args, kwargs = with_arrays((args, kwargs), arrays)
            return own(*args, **kwargs)

        return call

    def _skipping(self, index: int) -> LayerCall:
        """Return the call of a layer that is skipped: it gives back its arguments.

        The first one behind the own layers also keeps what is to be sent. It is not taken from the
        result of the last own layer, because a picture may add features to this result.
        """
        result, hand = self._trace.results[index], self._hand
        taken = self._trace.crossings[index].taken if index == self.end else ()

        def call(own: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ARG001 — the layer is skipped
            arrays = dict(array_paths((args, kwargs)))
            if taken:
                hand.sent = tuple(arrays[path] for path in taken)
            return _filled(result, arrays)

        return call


def _filled(tree: Any, arrays: Mapping[ArrayPath, mx.array]) -> Any:
    if isinstance(tree, Slot):
        found = arrays.get(tree.source) if tree.source is not None else None
        return mx.zeros(tree.shape, tree.dtype) if found is None else found
    if isinstance(tree, list):
        return [_filled(item, arrays) for item in tree]
    if isinstance(tree, tuple):
        return tuple(_filled(item, arrays) for item in tree)
    if type(tree) is dict:
        return {key: _filled(item, arrays) for key, item in tree.items()}
    return tree


def _shown(every: Sequence[object], own: Sequence[int]) -> list[int | None]:
    """Return for each cache of a model the number of the own cache of the same kind, if any."""
    by_kind = {_kind(every[place]): number for number, place in reversed(list(enumerate(own)))}
    numbers = {place: number for number, place in enumerate(own)}
    return [numbers.get(place, by_kind.get(_kind(cache))) for place, cache in enumerate(every)]


def _kind(cache: object) -> tuple[object, ...]:
    """Return what distinguishes caches that give different masks."""
    if is_list(cache):
        return tuple(_kind(inner) for inner in cache.caches)
    return type(cache), getattr(cache, "max_size", None), getattr(cache, "chunk_size", None)


def _stand_at(cache: object, num_tokens: int | mx.array) -> None:
    """Let an empty cache of a skipped layer state a number of tokens."""
    for leaf in leaves_of([cache]):
        if "offset" in vars(leaf):
            vars(leaf)["offset"] = num_tokens
