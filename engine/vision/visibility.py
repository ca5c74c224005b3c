"""Layers in which the tokens of a picture see each other, also those behind them.

mlx-lm's models know only masks for text. In the pass of a picture, a replaced layer gets a mask in
which the tokens of this pass are visible to all others of it. In other passes it gives the bits of
the original. Engine thread only.
"""

# mlx.nn has few type annotations.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import mlx.core as mx
from mlx import nn
from typing_extensions import override


class Visibility:
    """The visibility of tokens in the pass being built. All replaced layers of a model share it."""

    def __init__(self) -> None:
        self.is_whole = False  # True if the tokens of the pass see those behind them too

    @contextmanager
    def of_pass(self, *, is_picture: bool) -> Generator[None]:
        """Set the visibility for a pass that is built inside the with block."""
        self.is_whole = is_picture
        try:
            yield
        finally:
            self.is_whole = False


class MaskedLayer(nn.Module):
    """A layer of a language model, with a mask for pictures."""

    def __init__(self, layer: nn.Module, visibility: Visibility, window: int = 0) -> None:
        """Create the layer.

        Args:
            layer: the original layer.
            visibility: the visibility of tokens, shared by all layers.
            window: number of tokens that a token sees before it, with itself. In a longer picture a
                token does not see those before its window. 0: it sees all tokens of a picture.
        """
        super().__init__()
        self.layer: Any = layer
        self._visibility = visibility
        self._window = window
        if hasattr(layer, "layer_type"):
            self.layer_type: Any = layer.layer_type  # the model makes masks by it

    @override
    def __call__(self, x: mx.array, mask: Any = None, *arguments: Any, **options: Any) -> Any:
        if self._visibility.is_whole:
            mask = _with_all_of_pass(mask, x.shape[1], self._window)
        return self.layer(x, mask, *arguments, **options)


def _with_all_of_pass(mask: Any, num_tokens: int, window: int) -> mx.array | None:
    """Return a mask in which all tokens of the pass are visible: the last ones of the keys.

    Args:
        mask: one for text: None, "causal", or True where a key is visible, of shape (tokens, keys).
        num_tokens: number of tokens of the pass.
        window: see MaskedLayer.
    """
    if not isinstance(mask, mx.array):
        return None
    places = mx.arange(mask.shape[-1]) - (mask.shape[-1] - num_tokens)  # of keys in the pass
    is_of_pass = places >= 0
    if window:
        is_of_pass = is_of_pass & (places > mx.arange(num_tokens)[:, None] - window)
    return mask | is_of_pass
