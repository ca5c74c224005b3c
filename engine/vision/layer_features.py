"""Features of a picture that a model adds behind its first layers (DeepStack, arXiv 2406.04334).

Qwen3-VL's tower gives, beside the embeddings, features of some of its own layers. The language
model adds the first of them to the output of its first layer, and so on. mlx-lm's models do not
know them, so their first layers are replaced: in passes without features the replacement gives the
bits of the original. Engine thread only.
"""

# mlx.nn has few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import mlx.core as mx
from mlx import nn
from typing_extensions import override


def num_features(config: Mapping[str, Any]) -> int:
    """Return the number of layers that get features. config: config.json of a model that sees."""
    return len(config["vision_config"].get("deepstack_visual_indexes", ()))


class PassFeatures:
    """The features of the pass that is being built. All replaced layers of a model share it."""

    def __init__(self) -> None:
        self.of_layers: Sequence[
            mx.array
        ] = ()  # of shape (tokens, hidden size), for the first layers

    @contextmanager
    def of_pass(self, of_layers: Sequence[mx.array]) -> Generator[None]:
        """Set the features for a pass that is built inside the with block."""
        self.of_layers = of_layers
        try:
            yield
        finally:
            self.of_layers = ()


class FeatureLayer(nn.Module):
    """A layer of a language model, and the features that are added to its output."""

    def __init__(self, layer: nn.Module, index: int, features: PassFeatures) -> None:
        super().__init__()
        self.layer: Any = layer
        self._index = index
        self._features = features

    @override
    def __call__(self, x: mx.array, *arguments: Any, **options: Any) -> mx.array:
        hidden = self.layer(x, *arguments, **options)
        of_layers = self._features.of_layers
        return hidden + of_layers[self._index] if of_layers else hidden


def replace_layers(model: nn.Module, number: int) -> PassFeatures:
    """Replace the first layers of a model, and return the features that they share."""
    features = PassFeatures()
    layers = cast("list[nn.Module]", model.layers)
    layers[:number] = [
        FeatureLayer(layer, index, features) for index, layer in enumerate(layers[:number])
    ]
    return features
