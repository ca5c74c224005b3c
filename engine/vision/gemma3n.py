"""The tower of Gemma 3n: MobileNetV5, a network of convolutions. Engine thread only.

The layers are those of mlx-vlm, computed as in timm, whose tower transformers uses: with another
GELU, another padding before strides, and rows before columns. The token that ends a picture has an
embedding of the tower's own, so it is part of the picture. Layers get inputs of their own for each
token: those of a picture are for the token 0.
"""

# mlx.nn and mlx-vlm have few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from engine.vision.tower import (
    EncodedPicture,
    PassContext,
    Patches,
    PictureLength,
    TokenGrid,
    like_text,
)
from engine.vision.tower_module import TowerModule, import_part

_EPS = 1e-6  # of the norms of timm's tower
_MAX_EXPANSION = 6  # of the channels inside a block
_NUMBER_BYTES = 4
_COPIES = 5  # arrays of the largest size that are in memory at a time


@dataclass(frozen=True, slots=True)
class Network:
    """The sizes of a MobileNetV5."""

    stages: Callable[[], Sequence[Sequence[Any]]]  # the blocks of each stage, as mlx-vlm's settings
    side: int = 768  # pixels of a picture
    per_side: int = 16  # tokens in a row, and rows
    stem: int = 64  # channels of the first layer


def _published() -> Sequence[Sequence[Any]]:
    return import_part("gemma3n.vision").gemma3n_mobilenet_def()


# By the name that config.json has for a network
NETWORKS: dict[str, Network] = {"mobilenetv5_300m_enc": Network(_published)}


class Gemma3nTower:
    """The tower and image processor of Gemma 3n. Each picture becomes a square of the same size."""

    def __init__(self, folder: Path, config: Mapping[str, Any], tokens: PictureTokens) -> None:
        """Read the settings of the image processor. See Tower."""
        self._network = _network_of(config)
        self.opening, self.closing = f"\n\n{tokens.begin}", "\n\n"
        none, whole = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
        self._settings = ImageSettings.read(folder, Image.Resampling.BILINEAR, none, whole)
        self.form = json.dumps([self._network.side, self._settings.form])
        self._module = TowerModule(folder, config, make_gemma3n_tower)
        # Place of the token that ends a picture, among the embeddings of the tower
        self._end_place: int = config["eoi_token_id"] - config["vision_config"]["vocab_offset"]
        self._num_tokens = self._network.per_side**2

    def length(self, width: int, height: int) -> PictureLength:  # noqa: ARG002 (of the interface)
        """Return the length of a picture, which is the same for all."""
        return PictureLength(self._num_tokens + 1)

    def patches(self, pixels: np.ndarray) -> Patches:
        """Return pixels of shape (1, side, side, 3). See Tower.patches."""
        side = self._network.side
        return Patches(self._settings.scaled(pixels, side, side)[None], ())

    def encode(self, patches: Patches) -> tuple[EncodedPicture, Sequence[mx.array]]:
        """Return the embeddings of a picture. See Tower.encode."""
        module = self._module()
        network = module.vision_tower.timm_model
        values = mx.array(patches.values).astype(network.conv_stem.conv.weight.dtype)
        *parts, hidden = network.steps(values)
        tokens = hidden.reshape(1, self._num_tokens, -1)
        soft = module.embed_vision(tokens * tokens.shape[-1] ** 0.5)
        end = module.embed_vision.of_token(self._end_place)
        embeddings = mx.concatenate([soft, end[None, None].astype(soft.dtype)], axis=1)
        return EncodedPicture(embeddings, TokenGrid(1, self._num_tokens + 1)), parts

    def pass_bytes(self, num_tokens: int) -> int:  # noqa: ARG002 (of the interface)
        """Return an estimate of the memory for computing the embeddings of a picture, in bytes."""
        # The first block of the second stage makes more of the channels of the first one, which has
        # a quarter of the pixels in each direction.
        channels = self._network.stages()[0][-1].filters * _MAX_EXPANSION
        large, small = ((self._network.side // stride) ** 2 for stride in (2, 4))
        # A CPU unrolls the windows of the first two convolutions, of 3 x 3 pixels.
        unrolled = 9 * (large * 3 + small * self._network.stem)
        return (_COPIES * small * channels + unrolled) * _NUMBER_BYTES

    def release(self) -> None:
        """Drop the weights. The next picture reads them again."""
        self._module.release()

    @staticmethod
    def adapt(model: nn.Module, config: Mapping[str, Any]) -> PassContext:  # noqa: ARG004
        """Replace nothing: a picture is read like text."""
        return like_text


def _network_of(config: Mapping[str, Any]) -> Network:
    """Return the network of a config.json.

    Raises:
        PictureError: it is not known, or the model has another number of tokens of a picture.
    """
    vision = config["vision_config"]
    network = NETWORKS.get(str(vision.get("architecture")))
    end, first = config.get("eoi_token_id"), vision["vocab_offset"]
    if (
        network is None
        or config.get("vision_soft_tokens_per_image", 256) != network.per_side**2
        or not isinstance(end, int)
        or not 0 <= end - first < vision["vocab_size"]
    ):
        raise PictureError.of_blind_model()
    return network


class _Network(nn.Module):
    """A MobileNetV5 of mlx-vlm's layers, corrected to those of timm."""

    def __init__(self, network: Network, width: int) -> None:
        super().__init__()
        module = import_part("gemma3n.vision")
        self._per_side = network.per_side
        self.conv_stem = module.ConvNormAct(
            module.Conv2dSame, 3, network.stem, kernel_size=3, stride=2, bias=True
        )
        channels, ends = network.stem, list[int]()
        self.blocks: list[list[Any]] = []
        for stage in network.stages():
            blocks = list[Any]()
            for settings in stage:
                blocks.append(_block(module, settings, channels))
                channels = getattr(settings, "filters", channels)
            self.blocks.append(blocks)
            ends.append(channels)
        self.msfa = module.MobileNetV5MultiScaleFusionAdapter(
            [sum(ends[-2:])], width, output_resolution=network.per_side
        )
        for layer in self.modules():
            _correct(module, layer)

    def steps(self, pixels: mx.array) -> Iterator[mx.array]:
        """Yield the results of all steps. The last has the shape (1, rows, columns, width).

        pixels: of shape (1, side, side, 3).
        """
        hidden = self.conv_stem(pixels)
        yield hidden
        ends = list[mx.array]()
        for blocks in self.blocks:
            for block in blocks:
                hidden = block(hidden)
                yield hidden
            ends.append(hidden)
        fine, coarse = ends[-2:]
        ratio = fine.shape[1] // coarse.shape[1]
        coarse = mx.repeat(mx.repeat(coarse, ratio, axis=1), ratio, axis=2)
        fused = self.msfa.ffn(mx.concatenate([fine, coarse], axis=-1))
        size, pooled = self._per_side, fused.shape[1] // self._per_side
        means = fused.reshape(1, size, pooled, size, pooled, -1).mean(axis=(2, 4))
        yield self.msfa.norm(means)


def _block(module: Any, settings: Any, channels: int) -> Any:
    """Return a block for `channels`.

    Args:
        module: mlx-vlm's module.
        settings: its settings of the block.
        channels: number of channels before the block.
    """
    match type(settings).__name__:
        case "EdgeResidualConfig":
            return module.EdgeResidual(
                channels,
                settings.filters,
                exp_kernel_size=settings.kernel_size,
                stride=settings.strides,
                expand_ratio=settings.expand_ratio,
            )
        case "UniversalInvertedResidualConfig":
            return module.UniversalInvertedResidual(
                channels,
                settings.filters,
                dw_kernel_size_start=settings.start_dw_kernel_size,
                dw_kernel_size_mid=settings.mid_dw_kernel_size,
                stride=settings.strides,
                exp_ratio=settings.expand_ratio,
            )
        case _:
            return module.MobileAttention(
                channels,
                channels,
                num_heads=settings.num_heads,
                key_dim=settings.kv_dim,
                value_dim=settings.kv_dim,
                kv_stride=settings.kv_strides,
            )


def _correct(module: Any, layer: Any) -> None:
    """Change a layer of mlx-vlm to that of timm."""
    if isinstance(layer, module.RMSNormAct2d):
        layer.eps = _EPS
        if isinstance(layer.act, nn.GELU):
            layer.act = nn.GELU(approx="tanh")
    if isinstance(layer, module.MultiQueryAttention2d) and layer.kv_stride > 1:
        # With a stride, timm pads only behind a picture whose size is a multiple of it.
        for part in (layer.key, layer.value):
            channels, height, _, _ = part.down_conv.weight.shape
            part.down_conv = module.Conv2dSame(
                channels,
                channels,
                height,
                layer.kv_stride,
                0,
                (1, 1),
                channels,
                bias=False,
            )


class _Tower(nn.Module):
    """The network, by the name that it has in model folders."""

    def __init__(self, network: Network, width: int) -> None:
        super().__init__()
        self.timm_model = _Network(network, width)

    def sanitize(self, weights: Mapping[str, mx.array]) -> dict[str, mx.array]:
        """Return the weights in the order of MLX: channels last."""
        # The kernel of the first layer has as many channels as rows, so its shape does not tell the
        # order.
        own = self.timm_model.blocks[0][0].conv_exp.weight
        is_last = weights["vision_tower.timm_model.blocks.0.0.conv_exp.weight"].shape == own.shape
        return {
            name: array if is_last or array.ndim != 4 else array.transpose(0, 2, 3, 1)
            for name, array in weights.items()
        }


class _Embedder(nn.Module):
    """The tokens of a picture, projected to the width of the language model."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        vision, width = config["vision_config"], config["text_config"]["hidden_size"]
        own = vision["hidden_size"]
        self._eps = vision.get("rms_norm_eps", 1e-6)
        self.embedding: Any = nn.Embedding(vision["vocab_size"], own)
        self.hard_embedding_norm = nn.RMSNorm(own, eps=self._eps)
        self.soft_embedding_norm = nn.RMSNorm(own, eps=self._eps)
        self.embedding_projection = nn.Linear(own, width, bias=False)

    @override
    def __call__(self, x: mx.array) -> mx.array:
        return self._projected(self.soft_embedding_norm(x))

    def of_token(self, place: int) -> mx.array:
        """Return the embedding at a place of the tower's vocabulary, of shape (width,)."""
        return self._projected(self.hard_embedding_norm(self.embedding(mx.array(place))))

    def _projected(self, x: mx.array) -> mx.array:
        return mx.fast.rms_norm(self.embedding_projection(x), None, self._eps)


def make_gemma3n_tower(config: Mapping[str, Any]) -> nn.Module:
    """Return the tower and the projector of a config.json, with random weights."""
    module: Any = nn.Module()
    module.vision_tower = _Tower(_network_of(config), config["vision_config"]["hidden_size"])
    module.embed_vision = _Embedder(config)
    return module
