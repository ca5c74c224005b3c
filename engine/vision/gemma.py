"""The tower of Gemma 3: SigLIP, and a projector that averages its patches. Engine thread only.

The tokens of a picture see each other, also those behind them ("Gemma 3 Technical Report", arXiv
2503.19786), in all layers.
"""

# mlx.nn and mlx-vlm have few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import json
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
    SiglipAttention,
    TokenGrid,
    patch_bytes,
)
from engine.vision.tower_module import TowerModule, import_part
from engine.vision.visibility import MaskedLayer, Visibility


class GemmaTower:
    """The tower and image processor of Gemma 3. Each picture becomes a square of the same size."""

    opening = "\n\n<start_of_image>"
    closing = "<end_of_image>\n\n"

    def __init__(self, folder: Path, config: Mapping[str, Any], tokens: PictureTokens) -> None:  # noqa: ARG002 (of the interface)
        """Read the settings of the image processor. See Tower."""
        vision = config["vision_config"]
        self._config = config
        self._side: int = vision.get("image_size", 224)  # pixels
        self._num_patches = (self._side // vision["patch_size"]) ** 2
        self._num_tokens = tokens_of_picture(config)
        self._settings = ImageSettings.read(folder, Image.Resampling.BILINEAR)
        self.form = json.dumps([self._side, self._settings.form])
        self._module = TowerModule(folder, config, make_gemma_tower)

    def length(self, width: int, height: int) -> PictureLength:  # noqa: ARG002 (of the interface)
        """Return the length of a picture, which is the same for all."""
        return PictureLength(self._num_tokens)

    def patches(self, pixels: np.ndarray) -> Patches:
        """Return pixels of shape (1, side, side, 3). See Tower.patches."""
        return Patches(self._settings.scaled(pixels, self._side, self._side)[None], ())

    def encode(self, patches: Patches) -> tuple[EncodedPicture, Sequence[mx.array]]:
        """Return the embeddings of a picture. See Tower.encode."""
        module = self._module()
        tower, attend = module.vision_tower.vision_model, AttentionInBlocks()
        for layer in tower.encoder.layers:
            layer.self_attn.attend = attend
        values = mx.array(patches.values)
        values = values.astype(tower.embeddings.patch_embedding.weight.dtype)
        hidden, _, _ = tower(values)
        embeddings = module.multi_modal_projector(hidden)
        # The language model multiplies all embeddings by this factor, which is for those of tokens.
        width = embeddings.shape[-1]
        factor = mx.array(width**0.5, mx.bfloat16).astype(embeddings.dtype)
        side = round(self._num_tokens**0.5)
        grid = TokenGrid(side, side)
        return EncodedPicture(embeddings / factor, grid, sees_ahead=True), attend.results

    def pass_bytes(self, num_tokens: int) -> int:  # noqa: ARG002 (of the interface)
        """Return an estimate of the memory for computing the embeddings of a picture, in bytes."""
        return patch_bytes(self._num_patches, self._config["vision_config"]["hidden_size"])

    def release(self) -> None:
        """Drop the weights. The next picture reads them again."""
        self._module.release()

    @staticmethod
    def adapt(model: nn.Module, config: Mapping[str, Any]) -> PassContext:  # noqa: ARG004
        """Replace the layers by some that give a picture another mask."""
        visibility = Visibility()
        layers = cast("list[nn.Module]", model.layers)
        layers[:] = [MaskedLayer(layer, visibility) for layer in layers]

        def of_pass(_shift: int, picture: EncodedPicture | None) -> AbstractContextManager[None]:
            return visibility.of_pass(is_picture=picture is not None)

        return of_pass


def tokens_of_picture(config: Mapping[str, Any]) -> int:
    """Return the number of tokens of each picture."""
    own = config.get("mm_tokens_per_image") or config["text_config"].get("mm_tokens_per_image")
    return own or 256


class _Projector(nn.Module):
    """The averages of squares of patches, projected to the width of the language model."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        vision, width = config["vision_config"], config["text_config"]["hidden_size"]
        self._per_side = vision.get("image_size", 224) // vision["patch_size"]
        self._pooled = self._per_side // round(tokens_of_picture(config) ** 0.5)
        self._eps = vision.get("layer_norm_eps", 1e-6)
        shape, scale = (vision["hidden_size"], width), vision["hidden_size"] ** -0.5
        self.mm_input_projection_weight = mx.random.normal(shape, scale=scale)
        self.mm_soft_emb_norm: Any = nn.RMSNorm(vision["hidden_size"])

    @override
    def __call__(self, x: mx.array) -> mx.array:
        """Project patches of shape (1, patches, tower's width). Return (1, tokens, width)."""
        size, count = self._pooled, self._per_side // self._pooled
        squares = x.reshape(1, count, size, count, size, x.shape[-1])
        means = squares.mean(axis=(2, 4)).reshape(1, count * count, x.shape[-1])
        weight = 1.0 + self.mm_soft_emb_norm.weight
        return mx.fast.rms_norm(means, weight, self._eps) @ self.mm_input_projection_weight


def make_gemma_tower(config: Mapping[str, Any]) -> nn.Module:
    """Return the tower and the projector of a config.json, with random weights."""
    vision = config["vision_config"]
    parameters: Any = import_part("gemma3.config").VisionConfig.from_dict(vision)
    module: Any = nn.Module()
    module.vision_tower = import_part("gemma3.vision").VisionModel(parameters)
    for layer in module.vision_tower.vision_model.encoder.layers:
        layer.self_attn = SiglipAttention(vision["hidden_size"], vision["num_attention_heads"])
    module.multi_modal_projector = _Projector(config)
    return module
