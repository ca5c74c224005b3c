"""The towers of Qwen2-VL and Qwen2.5-VL. Engine thread only.

Both have a rotary embedding of rows and columns. In most layers of Qwen2.5-VL a patch sees only
those of its window ("Qwen2.5-VL Technical Report", arXiv 2502.13923). mlx-vlm's towers sort the
patches by windows.
"""

# mlx.nn and mlx-vlm have few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import groupby, pairwise
from types import MappingProxyType
from typing import Any, cast

import mlx.core as mx
from mlx import nn
from typing_extensions import override

from engine.catalog.model_config import picture_sections, text_settings
from engine.vision.positions import axes_in_blocks, replace_ropes
from engine.vision.qwen import QwenTower
from engine.vision.tower import AttentionInBlocks, EncodedPicture, PassContext, Patches, patch_bytes
from engine.vision.tower_module import import_part


class Qwen2Tower(QwenTower):
    """The tower and the image processor of Qwen2-VL and Qwen2.5-VL."""

    _patch_size = 14
    _colours = MappingProxyType(
        {
            "image_mean": [0.48145466, 0.4578275, 0.40821073],
            "image_std": [0.26862954, 0.26130258, 0.27577711],
        }
    )

    @override
    def encode(self, patches: Patches) -> tuple[EncodedPicture, Sequence[mx.array]]:
        """Return the embeddings of a picture. See Tower.encode."""
        tower, attend = self._module().vision_tower, AttentionInBlocks()
        for block in tower.blocks:
            block.attn.attend = attend
        values = mx.array(patches.values).astype(tower.patch_embed.proj.weight.dtype)
        embeddings = tower(values, mx.array([patches.grid]))
        return EncodedPicture(embeddings[None], self._grid(patches)), attend.results

    @override
    def pass_bytes(self, num_tokens: int) -> int:
        """Return an estimate of the memory for computing the embeddings of a picture, in bytes."""
        vision = self._config["vision_config"]
        width = vision.get("embed_dim") or vision["hidden_size"]
        return patch_bytes(num_tokens * self._processor.merge_size**2, width)

    @staticmethod
    @override
    def adapt(model: nn.Module, config: Mapping[str, Any]) -> PassContext:
        """Replace the rotary embeddings."""
        sections = picture_sections(text_settings(config), takes_turns=False)
        positions = replace_ropes(model, sections, axes_in_blocks)

        def of_pass(shift: int, picture: EncodedPicture | None) -> AbstractContextManager[None]:
            return positions.of_pass(shift, None if picture is None else picture.grid)

        return of_pass

    @staticmethod
    @override
    def _make(config: Mapping[str, Any]) -> nn.Module:
        return make_qwen2_tower(config)


class _Attention(nn.Module):
    """The attention of a tower in windows, computed in blocks by `attend`, which the tower sets."""

    def __init__(self, original: Any) -> None:
        super().__init__()
        self.qkv, self.proj = original.qkv, original.proj
        self._num_heads, self._scale = original.num_heads, original.scale
        self.attend: Any = None

    @override
    def __call__(self, x: mx.array, cu_seqlens: mx.array, rotary_pos_emb: mx.array) -> mx.array:
        """Return the attended patches.

        Args:
            x: patches of shape (patches, width).
            cu_seqlens: start of each window, and the number of patches.
            rotary_pos_emb: angles of shape (patches, D / 2).
        """
        num_patches, width = x.shape
        rotate = import_part("qwen2_vl.vision").apply_rotary_pos_emb_vision
        joined = self.qkv(x).reshape(num_patches, 3, self._num_heads, -1).swapaxes(0, 1)
        queries, keys = (rotate(joined[index][None], rotary_pos_emb)[0] for index in (0, 1))
        starts = cast("list[int]", cu_seqlens.tolist())
        outputs = [
            self._window_outputs((queries, keys, joined[2]), start, length, number)
            for start, length, number in _runs(starts)
        ]
        return self.proj(mx.concatenate(outputs).reshape(num_patches, width))

    def _window_outputs(
        self, tensors: Sequence[mx.array], start: int, length: int, number: int
    ) -> mx.array:
        """Return the attended values of windows, of shape (patches, H, D).

        Args:
            tensors: queries, keys and values of all patches, of this shape.
            start: the first patch of the windows.
            length: number of patches of each window.
            number: number of windows.
        """
        windows = (
            one[start : start + length * number]
            .reshape(number, length, *one.shape[1:])
            .swapaxes(1, 2)
            for one in tensors
        )
        output = self.attend(*windows, self._scale)
        return output.swapaxes(1, 2).reshape(number * length, *tensors[0].shape[1:])


def _runs(starts: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield the start, the length and the number of windows that follow each other and are as long.

    starts: start of each window, and the end of the last. A window can be empty.
    """
    start = 0
    lengths = (after - before for before, after in pairwise(starts) if after > before)
    for length, group in groupby(lengths):
        number = len(list(group))
        yield start, length, number
        start += length * number


def make_qwen2_tower(config: Mapping[str, Any]) -> nn.Module:
    """Return the tower of a config.json, with random weights."""
    name = config["model_type"]
    settings = {**config["vision_config"], "model_type": name}
    parameters: Any = import_part(f"{name}.config").VisionConfig.from_dict(settings)
    module: Any = nn.Module()
    module.vision_tower = import_part(f"{name}.vision").VisionModel(parameters)
    for block in module.vision_tower.blocks:
        block.attn = _Attention(block.attn)
    return module
