"""The tower of Qwen's models since Qwen3-VL. Engine thread only."""

# mlx.nn and mlx-vlm have few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import mlx.core as mx
import numpy as np
from mlx import nn

from engine.catalog.model_config import picture_sections
from engine.chat.pictures import PictureTokens
from engine.errors import PictureError
from engine.vision.layer_features import num_features, replace_layers
from engine.vision.positions import axes_in_turns, replace_ropes
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

# Sizes of the image processor, and their values where a folder has none
_SIZES: Final = {
    "patch_size": 16,
    "merge_size": 2,
    "temporal_patch_size": 2,
    "min_pixels": 56 * 56,
    "max_pixels": 28 * 28 * 1280,
}
_ATTEND: Final = "ensure_fused_sdpa"  # mlx-vlm's attention of towers


class QwenTower:
    """The tower and the image processor of Qwen's models since Qwen3-VL."""

    opening = closing = ""
    # Values of the image processor, where the folder has none
    _patch_size: int = 16
    _colours: Mapping[str, Sequence[float]] = MappingProxyType({})

    def __init__(self, folder: Path, config: Mapping[str, Any], tokens: PictureTokens) -> None:  # noqa: ARG002 (of the interface)
        """Read the settings of the image processor. See Tower."""
        self._config = config
        processing: Any = import_part("qwen3_vl.processing_qwen3_vl")
        try:
            # The folder is absolute, so mlx-vlm does not take it for a repository and opens no
            # connection.
            given = processing._qwen_vl_image_kwargs(folder.absolute(), self._patch_size)  # noqa: SLF001 (has no public name)
        except (ValueError, TypeError, AttributeError) as error:
            raise PictureError.of_folder("wrong") from error
        options = {**self._colours, **given}
        _require_valid(options, config["vision_config"])
        self._processor: Any = processing.Qwen3VLImageProcessor(**options)
        self.form = json.dumps(options, sort_keys=True)
        self._module = TowerModule(folder, config, self._make)

    def length(self, width: int, height: int) -> PictureLength:
        """Return a picture's length, whose positions are rows or columns, whichever are more."""
        try:
            # _resolved_size has no public name.
            rows, columns = self._processor._resolved_size(height, width)  # noqa: SLF001
        except ValueError as error:
            raise PictureError.of_narrow_picture(width, height) from error
        side = self._processor.patch_size * self._processor.merge_size
        rows, columns = rows // side, columns // side
        return PictureLength(rows * columns, max(rows, columns))

    def patches(self, pixels: np.ndarray) -> Patches:
        """Return patches of shape (patches, values). See Tower.patches."""
        values, grid = self._processor._process_one(pixels)  # noqa: SLF001 (public one takes files)
        return Patches(values, tuple(grid))

    def encode(self, patches: Patches) -> tuple[EncodedPicture, Sequence[mx.array]]:
        """Return the embeddings, and the features for the first layers of the language model."""
        tower = self._module().vision_tower
        values = mx.array(patches.values).astype(tower.patch_embed.proj.weight.dtype)
        module = sys.modules[type(tower.blocks[0].attn).__module__]
        original, attend = getattr(module, _ATTEND), AttentionInBlocks()
        setattr(module, _ATTEND, attend)
        try:
            embeddings, features = tower(values, mx.array([patches.grid]))
        finally:
            setattr(module, _ATTEND, original)
        picture = EncodedPicture(embeddings[None], self._grid(patches), tuple(features))
        return picture, [*attend.results, *features]

    def _grid(self, patches: Patches) -> TokenGrid:
        """Return the rows and columns of tokens of a picture."""
        merge = self._processor.merge_size
        _, rows, columns = patches.grid
        return TokenGrid(rows // merge, columns // merge)

    def pass_bytes(self, num_tokens: int) -> int:
        """Return an estimate of the memory for computing the embeddings of a picture, in bytes."""
        num_patches = num_tokens * self._processor.merge_size**2
        return patch_bytes(num_patches, self._config["vision_config"]["hidden_size"])

    def release(self) -> None:
        """Drop the weights. The next picture reads them again."""
        self._module.release()

    @staticmethod
    def _make(config: Mapping[str, Any]) -> nn.Module:
        return make_qwen_tower(config)

    @staticmethod
    def adapt(model: nn.Module, config: Mapping[str, Any]) -> PassContext:
        """Replace the rotary embeddings, and first layers if the tower has features for them."""
        positions = replace_ropes(model, picture_sections(config["text_config"]), axes_in_turns)
        number = num_features(config)
        features = replace_layers(model, number) if number else None

        @contextmanager
        def of_pass(shift: int, picture: EncodedPicture | None) -> Generator[None]:
            if picture is None:
                with positions.of_pass(shift):
                    yield
                return
            added = nullcontext() if features is None else features.of_pass(picture.features)
            with positions.of_pass(shift, picture.grid), added:
                yield

        return of_pass


def _require_valid(options: Mapping[str, Any], vision: Mapping[str, Any]) -> None:
    """Raise an error if the settings of the image processor make no pictures for the tower."""
    sizes = [options.get(key, default) for key, default in _SIZES.items()]
    colours = [options.get(key, [0.5] * 3) for key in ("image_mean", "image_std")]
    patch_size, merge_size, *_ = sizes
    if (
        not all(type(one) is int and one > 0 for one in sizes)
        or not all(_is_triple(one) for one in colours)
        or 0 in colours[1]
        or vision.get("patch_size", patch_size) != patch_size
        or vision.get("spatial_merge_size", merge_size) != merge_size
        or vision.get("window_size", patch_size * merge_size) < patch_size * merge_size
    ):
        raise PictureError.of_folder("wrong")


def _is_triple(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 3
        and all(isinstance(one, (int, float)) for one in value)
    )


def make_qwen_tower(config: Mapping[str, Any]) -> nn.Module:
    """Return the tower of a config.json, with random weights.

    All types have the same tower. mlx-vlm's copy for Qwen3-VL's experts has the two kinds of GELU
    the wrong way round, so it is not used.
    """
    settings = {**config["vision_config"], "model_type": "qwen3_vl"}
    parameters: Any = import_part("qwen3_vl.config").VisionConfig.from_dict(settings)
    module: Any = nn.Module()
    module.vision_tower = import_part("qwen3_vl.vision").VisionModel(parameters)
    return module
