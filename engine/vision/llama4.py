"""The tower of Llama 4: a picture is divided into tiles of the same size. Engine thread only.

The tokens of a picture are those of its tiles, row by row, and then those of the whole picture as
one tile. Control tokens stand behind each tile, and before the last one. Their embeddings are those
of the language model. mlx-lm's model takes no embeddings, so in the pass of a picture its embedding
of tokens is replaced.
"""

# mlx.nn and mlx-vlm have few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import json
import math
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from mlx import nn
from PIL import Image
from typing_extensions import override

from engine.chat.pictures import TILE_TOKENS, PictureTokens
from engine.errors import PictureError
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

_MAX_TILES = 16  # highest number of tiles of a picture, where the image processor sets none
_NUMBER_BYTES = 4
_LIMIT = 64  # of the numbers that an image processor may set
# Fields of mlx-vlm's settings that no layer uses, or that newer folders have elsewhere
_UNUSED = {
    "initializer_range": 0.02,
    "norm_eps": 1e-5,
    "num_channels": 3,
    "projector_dropout": 0.0,
    "vision_feature_layer": -1,
    "vision_feature_select_strategy": "default",
}


class Llama4Tower:
    """The tower and the image processor of Llama 4."""

    opening = "<|image_start|>"
    closing = "<|image_end|>"

    def __init__(self, folder: Path, config: Mapping[str, Any], tokens: PictureTokens) -> None:
        """Read the settings of the image processor. See Tower."""
        vision = config["vision_config"]
        self._config = config
        self._side: int = vision["image_size"]  # pixels of a tile
        settings = ImageSettings.read(folder, Image.Resampling.BILINEAR)
        self._settings, self._max_tiles = settings, settings.max_tiles or _MAX_TILES
        patches = self._side // vision["patch_size"]
        merged = round(1 / vision.get("pixel_shuffle_ratio", 0.5))
        if self._max_tiles > _LIMIT or self._side % vision["patch_size"] or patches % merged:
            raise PictureError.of_folder("wrong")
        self._num_patches = patches**2
        self._num_tokens = (patches // merged) ** 2  # of a tile
        if not set(TILE_TOKENS) <= tokens.markers.keys():
            raise PictureError.of_blind_model()
        self._ends = [tokens.markers[one] for one in TILE_TOKENS]
        self.form = json.dumps([self._side, self._max_tiles, settings.form])
        self._module = TowerModule(folder, config, make_llama4_tower)

    def length(self, width: int, height: int) -> PictureLength:
        """Return the length of a picture. See Tower.length."""
        return PictureLength(
            len(self._layout(*tiles_of(width, height, self._side, self._max_tiles)))
        )

    def patches(self, pixels: np.ndarray) -> Patches:
        """Return tiles of shape (tiles, side, side, 3). See Tower.patches."""
        _, height, width = pixels.shape
        side = self._side
        rows, columns = tiles_of(width, height, side, self._max_tiles)
        target = (rows * side, columns * side)
        limits = [
            min(max(size, side), most) for size, most in zip((height, width), target, strict=True)
        ]
        new_height, new_width = _within(height, width, *limits)
        canvas = np.broadcast_to(self._settings.of_black(), (*target, 3)).copy()
        canvas[:new_height, :new_width] = self._settings.scaled(pixels, new_width, new_height)
        tiles = canvas.reshape(rows, side, columns, side, 3).swapaxes(1, 2)
        tiles = tiles.reshape(rows * columns, side, side, 3)
        if len(tiles) > 1:
            whole = self._settings.scaled(pixels, side, side)
            tiles = np.concatenate([tiles, whole[None]])
        return Patches(tiles, (1, rows, columns))

    def encode(self, patches: Patches) -> tuple[EncodedPicture, Sequence[mx.array]]:
        """Return the embeddings of a picture. See Tower.encode."""
        module, attend = self._module(), AttentionInBlocks()
        for layer in module.vision_tower.model.layers:
            layer.self_attn.attend = attend
        tiles = [
            module.multi_modal_projector(module.vision_tower(mx.array(tile[None])))[0]
            for tile in patches.values
        ]
        _, rows, columns = patches.grid
        layout = self._layout(rows, columns)
        # Zeros are in the place of the embeddings of control tokens.
        ends = mx.zeros_like(tiles[0][:1])
        embeddings = mx.concatenate([*[ends] * len(self._ends), *tiles])[mx.array(layout)][None]
        ids = tuple(self._ends[at] if at < len(self._ends) else -1 for at in layout)
        picture = EncodedPicture(embeddings, TokenGrid(1, len(layout)), control_ids=ids)
        return picture, [*attend.results, *tiles]

    def pass_bytes(self, num_tokens: int) -> int:
        """Estimate the memory for the pixels of all tiles, and for one of them in the tower."""
        num_tiles = -(-num_tokens // self._num_tokens)
        pixels = num_tiles * self._side**2 * 3 * _NUMBER_BYTES
        return pixels + patch_bytes(self._num_patches, self._config["vision_config"]["hidden_size"])

    def release(self) -> None:
        """Drop the weights. The next picture reads them again."""
        self._module.release()

    @staticmethod
    def adapt(model: nn.Module, config: Mapping[str, Any]) -> PassContext:  # noqa: ARG004
        """Replace the embedding of tokens, because the model takes no embeddings."""
        parent: Any = model
        parent = parent.language_model.model
        replaced = parent.embed_tokens = _Embedding(parent.embed_tokens)

        @contextmanager
        def of_pass(_shift: int, picture: EncodedPicture | None) -> Generator[None]:
            replaced.of_picture = None if picture is None else picture.all_embeddings(parent)
            try:
                yield
            finally:
                replaced.of_picture = None

        return of_pass

    def _layout(self, rows: int, columns: int) -> list[int]:
        """Return the place of each token of a picture, in an array of all its different tokens.

        The array has three control tokens: behind a tile, behind a row of tiles, and before the
        tile with the whole picture. The tokens of the tiles follow.
        """
        tile_end, row_end, whole = range(3)
        tiles = iter(range(3, 3 + self._num_tokens * (rows * columns + 1), self._num_tokens))
        layout: list[int] = []
        for _ in range(rows if rows * columns > 1 else 0):
            for column in range(columns):
                start = next(tiles)
                layout += range(start, start + self._num_tokens)
                layout.append(row_end if column == columns - 1 else tile_end)
        start = next(tiles)
        return [*layout, whole, *range(start, start + self._num_tokens)]


def tiles_of(width: int, height: int, side: int, max_tiles: int) -> tuple[int, int]:
    """Return the rows and columns of tiles of a picture.

    The picture is enlarged as little as possible, or else made as little smaller as possible; of
    forms that do the same, the one with the fewest tiles.
    """
    forms = _forms(max_tiles)
    sizes = np.array(forms, np.float32) * side
    # In numbers of 4 bytes, as in transformers: which forms do the same depends on it.
    scales = np.minimum(sizes[:, 0] / np.float32(height), sizes[:, 1] / np.float32(width))
    larger = scales[scales >= 1]
    scale = larger.min() if len(larger) else scales.max()
    fitting = [form for form, one in zip(forms, scales, strict=True) if one == scale]
    return min(fitting, key=math.prod)


def _forms(max_tiles: int) -> list[tuple[int, int]]:
    """Return all rows and columns of at most max_tiles tiles, those of the same ratio together."""
    by_ratio: dict[float, list[tuple[int, int]]] = {}
    for number in range(max_tiles, 0, -1):
        for rows in range(1, number + 1):
            if number % rows == 0:
                columns = number // rows
                by_ratio.setdefault(rows / columns, []).append((rows, columns))
    return [form for forms in by_ratio.values() for form in forms]


def _within(height: int, width: int, most_height: int, most_width: int) -> tuple[int, int]:
    """Return the largest size of a picture that keeps its form, and fits."""
    by_height, by_width = most_height / height, most_width / width
    if by_width < by_height:
        return max(1, min(math.floor(height * by_width), most_height)), most_width
    return most_height, max(1, min(math.floor(width * by_height), most_width))


class _Embedding(nn.Module):
    """An embedding of tokens, with those of a picture in its pass."""

    def __init__(self, original: nn.Module) -> None:
        super().__init__()
        self.original: Any = original
        self.of_picture: mx.array | None = None

    @override
    def __call__(self, ids: mx.array) -> mx.array:
        return self.original(ids) if self.of_picture is None else self.of_picture


class _Attention(nn.Module):
    """A tower's attention to one tile, computed in blocks by `attend`, which the tower sets."""

    def __init__(self, original: Any) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = original.q_proj, original.k_proj, original.v_proj
        self.o_proj = original.o_proj
        self._num_heads, self._scale = original.num_heads, original.scale
        self.attend: Any = None

    @override
    def __call__(self, x: mx.array, freqs_ci: mx.array, mask: None = None) -> mx.array:
        _, num_patches, width = x.shape
        queries, keys, values = (
            project(x).reshape(1, num_patches, self._num_heads, -1)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        rotate = import_part("llama4.vision").vision_apply_rotary_emb
        queries, keys = rotate(queries, keys, freqs_ci)
        turned = (one.swapaxes(1, 2) for one in (queries, keys, values))
        output = self.attend(*turned, self._scale)
        return self.o_proj(output.swapaxes(1, 2).reshape(1, num_patches, width))


class _PatchEmbedding(nn.Module):
    """The embedding of patches. mlx-vlm's takes each pixel apart."""

    def __init__(self, original: Any, size: int) -> None:
        super().__init__()
        self.linear: Any = original.linear
        self._size = size

    @override
    def __call__(self, tiles: mx.array) -> mx.array:
        """Return embeddings of shape (1, patches, width) of a tile of shape (1, side, side, 3)."""
        count, size = tiles.shape[1] // self._size, self._size
        squares = tiles.reshape(count, size, count, size, -1).transpose(0, 2, 4, 1, 3)
        return self.linear(squares.reshape(1, count * count, -1).astype(self.linear.weight.dtype))


class _Projector(nn.Module):
    """The tokens of a tile, projected to the width of the language model."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        own, width = (
            config["vision_config"]["vision_output_dim"],
            config["text_config"]["hidden_size"],
        )
        self.linear_1 = nn.Linear(own, width, bias=False)

    @override
    def __call__(self, x: mx.array) -> mx.array:
        return self.linear_1(x)


def make_llama4_tower(config: Mapping[str, Any]) -> nn.Module:
    """Return the tower and the projector of a config.json, with random weights.

    mlx-vlm has an approximation of GELU, transformers has not.
    """
    vision = config["vision_config"]
    ropes = vision.get("rope_parameters") or {}
    defaults = {**_UNUSED, "pixel_shuffle_ratio": 0.5, "rope_theta": ropes.get("rope_theta", 10000)}
    settings = {**defaults, **vision, "model_type": "llama4_vision_model"}
    parts: Any = import_part("llama4.vision")
    parameters: Any = import_part("llama4.config").VisionConfig.from_dict(settings)
    module: Any = nn.Module()
    tower = module.vision_tower = parts.VisionModel(parameters)
    tower.patch_embedding = _PatchEmbedding(tower.patch_embedding, vision["patch_size"])
    for layer in tower.model.layers:
        layer.self_attn = _Attention(layer.self_attn)
        layer.mlp.activation_fn = nn.GELU()
    tower.vision_adapter.mlp.activation_fn = nn.GELU()
    module.multi_modal_projector = _Projector(config)
    return module
