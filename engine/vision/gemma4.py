"""The tower of Gemma 4: patches with two rotary axes, averaged in squares. Engine thread only.

The large models were trained with tokens of a picture that see each other in the layers with a
sliding window, but not in those with full attention (transformers, modeling_gemma4.py). The small
ones read a picture as text. Layers get inputs of their own for each token: those of a picture are
for the token 0.
"""

# mlx.nn and mlx-vlm have few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, cast

import mlx.core as mx
import numpy as np
from mlx import nn
from PIL import Image
from typing_extensions import override

from engine.chat.pictures import PictureTokens
from engine.vision.image_settings import ImageSettings
from engine.vision.tower import (
    AttentionInBlocks,
    EncodedPicture,
    PassContext,
    Patches,
    PictureLength,
    TokenGrid,
    patch_bytes,
)
from engine.vision.tower_module import TowerModule, import_part
from engine.vision.visibility import MaskedLayer, Visibility

_MAX_TOKENS = 280  # highest number of tokens of a picture, where the image processor sets none
_LIMITS = ("input_min", "input_max", "output_min", "output_max")  # of layers with clipped values


class Gemma4Tower:
    """The tower and the image processor of Gemma 4. A picture is scaled to a number of tokens."""

    def __init__(self, folder: Path, config: Mapping[str, Any], tokens: PictureTokens) -> None:
        """Read the settings of the image processor. See Tower."""
        vision = config["vision_config"]
        self.opening, self.closing = tokens.begin, tokens.end
        self._config = config
        # Number of patches of a token in each direction
        self._pooled: int = vision.get("pooling_kernel_size", 3)
        self._side: int = vision["patch_size"] * self._pooled  # pixels of a token
        none, whole = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
        self._settings = ImageSettings.read(folder, Image.Resampling.BICUBIC, none, whole)
        self._max_tokens = self._settings.max_tokens or _MAX_TOKENS
        self.form = json.dumps([self._side, self._max_tokens, self._settings.form])
        self._module = TowerModule(folder, config, make_gemma4_tower)

    def length(self, width: int, height: int) -> PictureLength:
        """Return the length of a picture. See Tower.length."""
        rows, columns = self._grid(width, height)
        return PictureLength(rows * columns)

    def patches(self, pixels: np.ndarray) -> Patches:
        """Return pixels of shape (1, 3, height, width). See Tower.patches."""
        _, height, width = pixels.shape
        rows, columns = self._grid(width, height)
        values = self._settings.scaled(pixels, columns * self._side, rows * self._side)
        return Patches(
            values.transpose(2, 0, 1)[None], (1, rows * self._pooled, columns * self._pooled)
        )

    def encode(self, patches: Patches) -> tuple[EncodedPicture, Sequence[mx.array]]:
        """Return the embeddings of a picture. See Tower.encode."""
        module, attend = self._module(), AttentionInBlocks()
        for layer in module.vision_tower.encoder.layers:
            layer.self_attn.attend = attend
        _, rows, columns = patches.grid
        hidden = module.vision_tower(mx.array(patches.values), rows, columns)
        embeddings = module.embed_vision(hidden)
        # The language model multiplies all embeddings by this factor, which is for those of tokens.
        factor = embeddings.shape[-1] ** 0.5
        grid = TokenGrid(rows // self._pooled, columns // self._pooled)
        sees_ahead = _sees_ahead(self._config)
        return EncodedPicture(embeddings / factor, grid, sees_ahead=sees_ahead), attend.results

    def pass_bytes(self, num_tokens: int) -> int:
        """Return an estimate of the memory for computing the embeddings of a picture, in bytes."""
        width = self._config["vision_config"]["hidden_size"]
        return patch_bytes(num_tokens * self._pooled**2, width)

    def release(self) -> None:
        """Drop the weights. The next picture reads them again."""
        self._module.release()

    @staticmethod
    def adapt(model: nn.Module, config: Mapping[str, Any]) -> PassContext:
        """Replace the layers with a sliding window, if the tokens of a picture see each other."""
        visibility, text = Visibility(), config["text_config"]
        if _sees_ahead(config):
            layers = cast("list[Any]", model.layers)
            layers[:] = [
                MaskedLayer(layer, visibility, text["sliding_window"])
                if layer.layer_type == "sliding_attention"
                else layer
                for layer in layers
            ]

        def of_pass(_shift: int, picture: EncodedPicture | None) -> AbstractContextManager[None]:
            return visibility.of_pass(is_picture=picture is not None)

        return of_pass

    def _grid(self, width: int, height: int) -> tuple[int, int]:
        """Return the rows and columns of tokens of a picture: as many as possible of its form."""
        factor = math.sqrt(self._max_tokens * self._side**2 / (width * height))
        rows, columns = (math.floor(factor * one / self._side) for one in (height, width))
        if not rows:
            return 1, min(width // height, self._max_tokens)
        if not columns:
            return min(height // width, self._max_tokens), 1
        return rows, columns


def _sees_ahead(config: Mapping[str, Any]) -> bool:
    """Return True if the tokens of a picture see those behind them."""
    return config["text_config"].get("use_bidirectional_attention") == "vision"


class _Attention(nn.Module):
    """The tower's attention to one picture, computed in blocks by `attend`, set by the tower."""

    def __init__(self, original: Any, rope_theta: float) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = original.q_proj, original.k_proj, original.v_proj
        self.o_proj, self.q_norm, self.k_norm = original.o_proj, original.q_norm, original.k_norm
        self._v_norm, self._rope_theta = (
            import_part("gemma4.vision").VisionRMSNormNoScale(),
            rope_theta,
        )
        self._num_heads, self._num_kv_heads = original.num_heads, original.num_kv_heads
        self.attend: Any = None

    @override
    def __call__(self, x: mx.array, positions: mx.array, _mask: None = None) -> mx.array:
        _, num_patches, _ = x.shape
        rotate = import_part("gemma4.vision").apply_multidimensional_rope

        def heads(y: mx.array, number: int) -> mx.array:
            return y.reshape(1, num_patches, number, -1)

        queries = self.q_norm(heads(self.q_proj(x), self._num_heads))
        keys = self.k_norm(heads(self.k_proj(x), self._num_kv_heads))
        values = self._v_norm(heads(self.v_proj(x), self._num_kv_heads))
        queries, keys = (rotate(one, positions, self._rope_theta) for one in (queries, keys))
        turned = (one.transpose(0, 2, 1, 3) for one in (queries, keys, values))
        output = self.attend(*turned, 1.0)
        return self.o_proj(output.transpose(0, 2, 1, 3).reshape(1, num_patches, -1))


class _Tower(nn.Module):
    """The layers of mlx-vlm's tower, for one picture without padding."""

    def __init__(self, parameters: Any) -> None:
        super().__init__()
        module = import_part("gemma4.vision")
        self.patch_embedder = module.VisionPatchEmbedder(parameters)
        self.encoder = module.VisionTransformerModel(parameters)
        for layer in self.encoder.layers:
            theta = parameters.rope_parameters["rope_theta"]
            layer.self_attn = _Attention(layer.self_attn, theta)
        self._pooled: int = parameters.pooling_kernel_size
        self._is_clipped: bool = parameters.use_clipped_linears
        self._is_standard: bool = parameters.standardize
        if self._is_standard:
            self.std_bias = mx.zeros((parameters.hidden_size,))
            self.std_scale = mx.ones((parameters.hidden_size,))

    @override
    def __call__(self, pixels: mx.array, rows: int, columns: int) -> mx.array:
        """Return the tokens of a picture, of shape (1, tokens, width).

        Args:
            pixels: values from 0 to 1, of shape (1, 3, height, width).
            rows: rows of patches.
            columns: columns of patches.
        """
        places = mx.arange(rows * columns)
        positions = mx.stack([places % columns, places // columns], axis=-1)[None]
        is_padding = mx.zeros((1, rows * columns), mx.bool_)
        hidden = self.patch_embedder(pixels, positions, is_padding)
        kind, width, size = hidden.dtype, hidden.shape[-1], self._pooled
        for layer in self.encoder.layers:
            hidden = layer(hidden, positions, None)
        squares = hidden.reshape(1, rows // size, size, columns // size, size, width)
        # float16 cannot hold the product.
        means = squares.astype(mx.float32).mean(axis=(2, 4)).astype(kind).astype(mx.float32)
        pooled = means.reshape(1, -1, width) * width**0.5
        if self._is_standard:
            pooled = (pooled - self.std_bias) * self.std_scale
        return pooled.astype(kind)

    def sanitize(self, weights: Mapping[str, mx.array]) -> dict[str, mx.array]:
        """Return the weights that the tower uses."""
        return {
            name: array
            for name, array in weights.items()
            if self._is_clipped or not name.endswith(_LIMITS)
        }


class _Embedder(nn.Module):
    """The tokens of a picture, projected to the width of the language model."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        vision, width = config["vision_config"], config["text_config"]["hidden_size"]
        self._eps = vision.get("rms_norm_eps", 1e-6)
        self.embedding_projection = nn.Linear(vision["hidden_size"], width, bias=False)

    @override
    def __call__(self, x: mx.array) -> mx.array:
        return self.embedding_projection(mx.fast.rms_norm(x, None, self._eps))


def make_gemma4_tower(config: Mapping[str, Any]) -> nn.Module:
    """Return the tower and the projector of a config.json, with random weights."""
    module: Any = nn.Module()
    parameters = import_part("gemma4.config").VisionConfig.from_dict(config["vision_config"])
    module.vision_tower = _Tower(parameters)
    module.embed_vision = _Embedder(config)
    return module
