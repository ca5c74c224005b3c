"""The tower of LFM2-VL: SigLIP 2 on the tiles of a picture, and its projector. Engine thread only.

The tokens of a picture are those of its tiles, row by row, then those of the whole picture. A
control token stands before each tile and before the whole. Their embeddings are those of the
language model.
"""

# mlx.nn and mlx-vlm have few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from mlx import nn
from PIL import Image
from typing_extensions import override

from engine.chat.pictures import PictureTokens
from engine.errors import PictureError
from engine.vision.image_settings import ImageSettings
from engine.vision.tiles import TileLayout, TileSettings
from engine.vision.tower import (
    AttentionInBlocks,
    EncodedPicture,
    PassContext,
    Patches,
    PictureLength,
    SiglipAttention,
    TokenGrid,
    like_text,
    patch_bytes,
)
from engine.vision.tower_module import TowerModule, import_part


class Lfm2Tower:
    """The tower and the image processor of LFM2-VL."""

    def __init__(self, folder: Path, config: Mapping[str, Any], tokens: PictureTokens) -> None:
        """Read the settings of the image processor. See Tower."""
        self._config = config
        self._tiles = TileSettings.read(folder, config)
        if not (_is_known(config) and self._tiles.markers <= tokens.markers.keys()):
            raise PictureError.of_folder("wrong")
        self._settings = ImageSettings.read(folder, Image.Resampling.BILINEAR)
        self._markers = tokens.markers
        is_marked = self._tiles.has_markers
        self.opening = "<|image_start|>" if is_marked else ""
        self.closing = "<|image_end|>" if is_marked else ""
        self.form = json.dumps([self._tiles.form, self._settings.form])
        self._module = TowerModule(folder, config, make_lfm2_tower)

    def length(self, width: int, height: int) -> PictureLength:
        """Return the length of a picture, with the control tokens in it. See Tower.length."""
        views = self._tiles.views(self._tiles.layout(width, height))
        return PictureLength(sum(view.rows * view.columns + bool(view.marker) for view in views))

    def patches(self, pixels: np.ndarray) -> Patches:
        """Return patches of shape (patches, values), view by view. See Tower.patches."""
        _, height, width = pixels.shape
        layout, images = self._tiles.layout(width, height), list[np.ndarray]()
        if layout.is_divided:
            side = self._tiles.tile_side
            large = self._settings.scaled(pixels, layout.columns * side, layout.rows * side)
            images += [
                large[top : top + side, left : left + side]
                for top in range(0, layout.rows * side, side)
                for left in range(0, layout.columns * side, side)
            ]
        if self._tiles.has_whole or not layout.is_divided:
            rows, columns = (one * self._tiles.side for one in layout.whole)
            images.append(self._settings.scaled(pixels, columns, rows))
        values = [_divided(image, self._tiles.patch_side) for image in images]
        return Patches(np.concatenate(values), (layout.rows, layout.columns, *layout.whole))

    def encode(self, patches: Patches) -> tuple[EncodedPicture, Sequence[mx.array]]:
        """Return the embeddings of a picture. See Tower.encode."""
        module, attend = self._module(), AttentionInBlocks()
        for layer in module.vision_tower.encoder.layers:
            layer.self_attn.attend = attend
        rows, columns, *whole = patches.grid
        views = self._tiles.views(TileLayout(rows, columns, (whole[0], whole[1])))
        factor = self._tiles.side // self._tiles.patch_side
        start, parts, ids = 0, list[mx.array](), list[int]()
        for view in views:
            sides = (view.rows * factor, view.columns * factor)
            end = start + math.prod(sides)
            hidden = module.vision_tower(mx.array(patches.values[start:end]), *sides)
            tokens = module.multi_modal_projector(hidden, view.rows, view.columns)
            if view.marker:
                # In the place of the embedding, which is that of the language model
                parts.append(mx.zeros_like(tokens[:1]))
                ids.append(self._markers[view.marker])
            parts.append(tokens)
            ids += [-1] * len(tokens)
            start = end
        embeddings = mx.concatenate(parts)[None]
        grid = TokenGrid(1, embeddings.shape[1])
        return EncodedPicture(embeddings, grid, control_ids=tuple(ids)), attend.results

    def pass_bytes(self, num_tokens: int) -> int:
        """Return an estimate of the memory for the largest view of a picture, in bytes."""
        per_token = (self._tiles.side // self._tiles.patch_side) ** 2
        num_patches = min(num_tokens, self._tiles.max_view_tokens) * per_token
        return patch_bytes(num_patches, self._config["vision_config"]["hidden_size"])

    def release(self) -> None:
        """Drop the weights. The next picture reads them again."""
        self._module.release()

    @staticmethod
    def adapt(model: nn.Module, config: Mapping[str, Any]) -> PassContext:  # noqa: ARG004
        """Replace nothing: a picture is read like text."""
        return like_text


def _is_known(config: Mapping[str, Any]) -> bool:
    """Return True if mlx-vlm's layers and the projector compute what a config.json asks for."""
    vision = config["vision_config"]
    num_patches = vision.get("num_patches", 256)
    return (
        vision.get("hidden_act", "gelu_pytorch_tanh") == "gelu_pytorch_tanh"
        and config.get("projector_hidden_act", "gelu") == "gelu"
        and isinstance(num_patches, int)
        and num_patches > 0
        and math.isqrt(num_patches) ** 2 == num_patches
    )


def _divided(image: np.ndarray, side: int) -> np.ndarray:
    """Return the patches of an image of shape (height, width, 3), row by row."""
    height, width, _ = image.shape
    squares = image.reshape(height // side, side, width // side, side, 3)
    return squares.transpose(0, 2, 1, 3, 4).reshape(-1, side * side * 3)


class _Tower(nn.Module):
    """The layers of mlx-vlm's tower, for one view without padding."""

    def __init__(self, parameters: Any, *, has_norm: bool) -> None:
        super().__init__()
        module = import_part("lfm2_vl.vision")
        self.embeddings = module.VisionEmbeddings(parameters)
        self.encoder = module.Encoder(parameters)
        for layer in self.encoder.layers:
            layer.self_attn = SiglipAttention(
                parameters.hidden_size, parameters.num_attention_heads
            )
        self.post_layernorm = nn.LayerNorm(parameters.hidden_size, eps=parameters.layer_norm_eps)
        self._has_norm = has_norm

    @override
    def __call__(self, patches: mx.array, rows: int, columns: int) -> mx.array:
        """Return the output for patches of shape (rows * columns, values)."""
        embeddings, kind = self.embeddings, self.post_layernorm.weight.dtype
        places = self._places(rows, columns).astype(kind)
        hidden = (embeddings.patch_embedding(patches.astype(kind)) + places)[None]
        for layer in self.encoder.layers:
            hidden = layer(hidden)
        return self.post_layernorm(hidden)[0]

    def _places(self, rows: int, columns: int) -> mx.array:
        """Return the embeddings of positions, stretched to the grid of a view.

        They equal those of mlx-vlm, whose kernel for Macs does not run on a CPU.
        """
        side = self.embeddings.position_embedding_size
        table = self.embeddings.position_embedding(mx.arange(side * side)).astype(mx.float32)
        by_row = mx.array(_stretched(side, rows)) @ table.reshape(side, -1)
        by_column = mx.array(_stretched(side, columns)) @ by_row.reshape(rows, side, -1)
        return by_column.reshape(rows * columns, -1)

    def sanitize(self, weights: Mapping[str, mx.array]) -> dict[str, mx.array]:
        """Return the weights that the tower and the projector use."""
        return {
            name: array
            for name, array in weights.items()
            if self._has_norm or ".layer_norm." not in name
        }


def _stretched(num_before: int, num_after: int) -> np.ndarray:
    """Return the matrix that scales a row of values linearly. It averages values that become one.

    Its shape is (num_after, num_before).
    """
    scale = num_before / num_after
    centres = (np.arange(num_after) + 0.5) * scale - 0.5
    distances = np.abs(np.arange(num_before) - centres[:, None])
    weights = np.maximum(0.0, 1.0 - distances / max(scale, 1.0))
    return (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)


class _Projector(nn.Module):
    """Squares of patches, joined and projected to the width of the language model."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self._factor: int = config.get("downsample_factor", 2)
        width = config["vision_config"]["hidden_size"] * self._factor**2
        between, out = (
            config.get("projector_hidden_size", 2560),
            config["text_config"]["hidden_size"],
        )
        has_bias = bool(config.get("projector_bias", True))
        self._has_norm = has_norm(config)
        if self._has_norm:
            self.layer_norm = nn.LayerNorm(width)
        self.linear_1 = nn.Linear(width, between, bias=has_bias)
        self.linear_2 = nn.Linear(between, out, bias=has_bias)

    @override
    def __call__(self, x: mx.array, rows: int, columns: int) -> mx.array:
        """Project patches of shape (patches, tower's width). Return (rows * columns, width)."""
        factor, width = self._factor, x.shape[-1]
        squares = x.reshape(rows, factor, columns, factor, width).transpose(0, 2, 1, 3, 4)
        joined = squares.reshape(rows * columns, factor * factor * width)
        if self._has_norm:
            joined = self.layer_norm(joined)
        return self.linear_2(nn.gelu(self.linear_1(joined)))


def has_norm(config: Mapping[str, Any]) -> bool:
    """Return True if the projector has a norm. Some folders have its weights nevertheless."""
    return bool(config.get("projector_use_layernorm", True))


def make_lfm2_tower(config: Mapping[str, Any]) -> nn.Module:
    """Return the tower and the projector of a config.json, with random weights."""
    parameters: Any = import_part("lfm2_vl.config").VisionConfig.from_dict(config["vision_config"])
    module: Any = nn.Module()
    module.vision_tower = _Tower(parameters, has_norm=has_norm(config))
    module.multi_modal_projector = _Projector(config)
    return module
