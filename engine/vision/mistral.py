"""The tower of Mistral's models since Mistral Small 3.1 (Pixtral), and its projector.

The tokens of a picture are its rows from the top. A control token ends each row, another one the
picture. Their embeddings are those of the language model. Engine thread only.
"""

# mlx.nn and mlx-vlm have few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from mlx import nn
from PIL import Image
from typing_extensions import override

from engine.chat.pictures import PictureTokens
from engine.vision.image_settings import ImageSettings
from engine.vision.tower import (
    AttentionInBlocks,
    BlockAttention,
    EncodedPicture,
    PassContext,
    Patches,
    PictureLength,
    TokenGrid,
    like_text,
    patch_bytes,
)
from engine.vision.tower_module import TowerModule, import_part

_MEAN = (0.48145466, 0.4578275, 0.40821073)
_STD = (0.26862954, 0.26130258, 0.27577711)


class MistralTower:
    """The tower and the image processor of Mistral's models."""

    opening = closing = ""

    def __init__(self, folder: Path, config: Mapping[str, Any], tokens: PictureTokens) -> None:
        """Read the settings of the image processor. See Tower."""
        vision = config["vision_config"]
        self._config = config
        self._merge: int = config.get("spatial_merge_size", 2)
        self._side: int = vision["patch_size"] * self._merge  # pixels of a token
        settings = ImageSettings.read(folder, Image.Resampling.BICUBIC, _MEAN, _STD)
        # The tower has positions for pictures of this size.
        self._longest = min(settings.longest or vision["image_size"], vision["image_size"])
        self._settings = settings
        self._end_ids = (tokens.row_end, tokens.picture_end)
        self.form = json.dumps([self._side, self._longest, settings.form])
        self._module = TowerModule(folder, config, make_mistral_tower)

    def length(self, width: int, height: int) -> PictureLength:
        """Return the length of a picture. See Tower.length."""
        rows, columns = self._grid(width, height)
        return PictureLength(rows * (columns + 1))

    def patches(self, pixels: np.ndarray) -> Patches:
        """Return pixels of shape (1, height, width, 3). See Tower.patches."""
        _, height, width = pixels.shape
        rows, columns = self._grid(width, height)
        values = self._settings.scaled(pixels, columns * self._side, rows * self._side)
        return Patches(values[None], (1, rows * self._merge, columns * self._merge))

    def encode(self, patches: Patches) -> tuple[EncodedPicture, Sequence[mx.array]]:
        """Return the embeddings of a picture. See Tower.encode."""
        module, attend = self._module(), AttentionInBlocks()
        tower = module.vision_tower.vision_model
        for layer in tower.transformer.layers:
            layer.attention.attend = attend
        values = mx.array(patches.values)
        _, height, width, _ = values.shape
        layer = self._config.get("vision_feature_layer", -1)
        hidden = tower(values, output_hidden_states=True, image_sizes=[(height, width)])[1][layer]
        _, rows, columns = patches.grid
        projected = module.multi_modal_projector(hidden[0], rows, columns)
        rows, columns = rows // self._merge, columns // self._merge
        of_row, of_picture = self._end_ids
        line = (-1,) * columns
        ids = (*(*line, of_row) * (rows - 1), *line, of_picture)
        # Zeros are in the place of the embeddings of control tokens.
        lines = mx.pad(projected.reshape(rows, columns, -1), [(0, 0), (0, 1), (0, 0)])
        embeddings = lines.reshape(1, rows * (columns + 1), -1)
        picture = EncodedPicture(embeddings, TokenGrid(rows, columns + 1), control_ids=ids)
        return picture, attend.results

    def pass_bytes(self, num_tokens: int) -> int:
        """Return an estimate of the memory for computing the embeddings of a picture, in bytes."""
        width = self._config["vision_config"]["hidden_size"]
        return patch_bytes(num_tokens * self._merge**2, width)

    def release(self) -> None:
        """Drop the weights. The next picture reads them again."""
        self._module.release()

    @staticmethod
    def adapt(model: nn.Module, config: Mapping[str, Any]) -> PassContext:  # noqa: ARG004
        """Replace nothing: a picture is read like text."""
        return like_text

    def _grid(self, width: int, height: int) -> tuple[int, int]:
        """Return the rows and columns of tokens of a picture, without those that end rows."""
        ratio = max(1.0, height / self._longest, width / self._longest)
        pixels = (max(1, int(height / ratio)), max(1, int(width / ratio)))
        rows, columns = ((one - 1) // self._side + 1 for one in pixels)
        return rows, columns


class _Projector(nn.Module):
    """Squares of patches, joined and projected to the width of the language model."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        width = config["vision_config"]["hidden_size"]
        text = config["text_config"]
        out, has_bias = text["hidden_size"], bool(config.get("multimodal_projector_bias"))
        self._merge = config.get("spatial_merge_size", 2)
        self.norm = nn.RMSNorm(width, eps=text["rms_norm_eps"])
        self.patch_merger: Any = nn.Module()
        self.patch_merger.merging_layer = nn.Linear(width * self._merge**2, width, bias=False)
        self.linear_1 = nn.Linear(width, out, bias=has_bias)
        self.linear_2 = nn.Linear(out, out, bias=has_bias)

    @override
    def __call__(self, x: mx.array, rows: int, columns: int) -> mx.array:
        """Project patches of shape (rows * columns, tower's width). Return (tokens, width)."""
        size, width = self._merge, x.shape[-1]
        squares = self.norm(x).reshape(rows // size, size, columns // size, size, width)
        joined = squares.transpose(0, 2, 4, 1, 3).reshape(-1, width * size * size)
        return self.linear_2(nn.gelu(self.linear_1(self.patch_merger.merging_layer(joined))))


class _Attention(BlockAttention):
    """The attention of Pixtral."""

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__(width, num_heads, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)

    @override
    def __call__(
        self,
        x: mx.array,
        _keys: mx.array,
        _values: mx.array,
        angles: tuple[mx.array, mx.array],
        _mask: mx.array | None = None,
    ) -> mx.array:
        rotate = import_part("pixtral.vision").apply_rotary_pos_emb
        return self.o_proj(self.attended(x, lambda q, k: rotate(q, k, *angles, unsqueeze_dim=0)))


def make_mistral_tower(config: Mapping[str, Any]) -> nn.Module:
    """Return the tower and the projector of a config.json, with random weights."""
    vision = config["vision_config"]
    parameters: Any = import_part("pixtral.config").VisionConfig.from_dict(vision)
    module: Any = nn.Module()
    module.vision_tower = import_part("pixtral.vision").VisionModel(parameters)
    for layer in module.vision_tower.vision_model.transformer.layers:
        heads = vision["num_attention_heads"]
        layer.attention = _Attention(vision["hidden_size"], heads)
    module.multi_modal_projector = _Projector(config)
    return module
