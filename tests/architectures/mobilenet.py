"""MobileNetV5 of Gemma 3n, computed from its weights alone in the way of timm (timm/models/mobilenetv5.py).

mlx-vlm's tower differs: its GELU is exact, its small term in norms is ten times as large, its convolutions
with a stride inside attention pad both sides, and its tokens are columns.
"""

# mlx has few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mlx.core as mx
from mlx import nn

_PREFIX = "vision_tower.timm_model."


class MobileNet:
    """The network of some weights. All arrays have the shape (1, height, width, channels)."""

    def __init__(self, weights: Mapping[str, mx.array], stages: Sequence[Sequence[Any]]) -> None:
        self._weights = {name.removeprefix(_PREFIX): array for name, array in weights.items()}
        self._stages = stages

    def tokens(self, pixels: mx.array, per_side: int) -> mx.array:
        """Return the tokens of a picture by rows, of shape (1, tokens, width)."""
        x = self._convolved("conv_stem", pixels, stride=2, has_act=True)
        ends: list[mx.array] = []
        for number, stage in enumerate(self._stages):
            for place, settings in enumerate(stage):
                x = self._block(f"blocks.{number}.{place}", x, settings)
            ends.append(x)
        fine, coarse = ends[-2:]
        indices = mx.arange(fine.shape[1]) // (fine.shape[1] // coarse.shape[1])
        joined = mx.concatenate([fine, coarse[:, indices][:, :, indices]], axis=-1)
        joined = self._convolved("msfa.ffn.pw_exp", joined, has_act=True)
        joined = self._convolved("msfa.ffn.pw_proj", joined)
        size = joined.shape[1] // per_side
        squares = joined.reshape(1, per_side, size, per_side, size, -1)
        pooled = squares.mean(axis=(2, 4))
        return self._normed("msfa.norm", pooled).reshape(1, per_side**2, -1)

    def _block(self, name: str, x: mx.array, settings: Any) -> mx.array:
        if hasattr(settings, "kv_dim"):
            return x + self._attended(name, x, settings)
        stride = settings.strides
        if hasattr(settings, "kernel_size"):
            hidden = self._kernel(f"{name}.conv_exp", x, stride)
            hidden = self._normed(f"{name}.bn1", hidden, has_act=True)
            hidden = self._kernel(f"{name}.conv_pwl", hidden)
            hidden = self._normed(f"{name}.bn2", hidden)
        else:
            hidden = x
            if settings.start_dw_kernel_size:
                hidden = self._convolved(f"{name}.dw_start", hidden)
            hidden = self._convolved(f"{name}.pw_exp", hidden, has_act=True)
            if settings.mid_dw_kernel_size:
                hidden = self._convolved(f"{name}.dw_mid", hidden, stride=stride, has_act=True)
            hidden = self._convolved(f"{name}.pw_proj", hidden)
            hidden = hidden * self._weights[f"{name}.layer_scale.gamma"]
        return x + hidden if x.shape == hidden.shape else hidden

    def _attended(self, name: str, x: mx.array, settings: Any) -> mx.array:
        """Return the attention of all places, with many heads of queries and one of keys and values."""
        normed = self._normed(f"{name}.norm", x)
        _, height, width, _ = x.shape

        def projected(part: str) -> mx.array:
            y = normed
            if part != "query" and settings.kv_strides > 1:
                y = self._kernel(f"{name}.attn.{part}.down_conv", y, settings.kv_strides)
                y = self._normed(f"{name}.attn.{part}.norm", y)
            y = self._kernel(f"{name}.attn.{part}.proj", y)
            return y.reshape(-1, y.shape[-1])

        queries, keys, values = (projected(part) for part in ("query", "key", "value"))
        queries = queries.reshape(len(queries), settings.num_heads, settings.kv_dim)
        scores = mx.einsum("lhd,md->hlm", queries, keys) * settings.kv_dim**-0.5
        heads = mx.einsum("hlm,md->lhd", mx.softmax(scores, axis=-1), values)
        output = self._kernel(f"{name}.attn.output.proj", heads.reshape(1, height, width, -1))
        return output * self._weights[f"{name}.layer_scale.gamma"]

    def _convolved(
        self, name: str, x: mx.array, *, stride: int = 1, has_act: bool = False
    ) -> mx.array:
        return self._normed(f"{name}.bn", self._kernel(f"{name}.conv", x, stride), has_act=has_act)

    def _kernel(self, name: str, x: mx.array, stride: int = 1) -> mx.array:
        """Convolve with padding for ceil(size / stride) results: the odd pixel of it lies behind."""
        weight = self._weights[f"{name}.weight"]
        size, height = weight.shape[1], x.shape[1]
        padding = max(0, (-(-height // stride) - 1) * stride + size - height)
        around = (padding // 2, padding - padding // 2)
        padded = mx.pad(x, [(0, 0), around, around, (0, 0)])
        groups = x.shape[-1] // weight.shape[-1]
        result = mx.conv2d(padded, weight, stride=stride, groups=groups)
        return result + self._weights.get(f"{name}.bias", mx.array(0.0))

    def _normed(self, name: str, x: mx.array, *, has_act: bool = False) -> mx.array:
        normed = x * mx.rsqrt(mx.mean(x * x, axis=-1, keepdims=True) + 1e-6)
        normed = normed * self._weights[f"{name}.weight"]
        return nn.gelu_approx(normed) if has_act else normed
