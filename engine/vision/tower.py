"""The vision tower of a model, by mlx-vlm: pixels to embeddings. Engine thread only."""

# mlx.nn and mlx-vlm have few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import mlx.core as mx
import numpy as np
from mlx import nn

from engine.catalog.weights import TOWER_NAMES
from engine.errors import PictureError

_PACKAGES = ("mlx_vlm", "mlx_vlm.models", "mlx_vlm.models.qwen3_vl")
_ATTEND = "ensure_fused_sdpa"  # mlx-vlm's attention of towers
# Highest number of scores (queries x keys x heads) in one block. Two CPU cores compute a block of this
# size in about 50 ms.
_MAX_SCORES_CPU = 1 << 19
_MAX_SCORES_GPU = 1 << 30


@dataclass(frozen=True, slots=True)
class Patches:
    """A picture as the tower gets it."""

    values: np.ndarray  # of shape (patches, values)
    grid: tuple[int, ...]  # number of pictures in time, of rows and of columns of patches


@dataclass(frozen=True, slots=True)
class EncodedPicture:
    """A picture as a model gets it."""

    embeddings: mx.array  # lazy, of shape (1, tokens, hidden size)
    grid: tuple[int, int]  # rows and columns of tokens
    # What is added behind the first layers of the language model: lazy, of shape (tokens, hidden size)
    features: tuple[mx.array, ...] = ()


class _AttentionInBlocks:
    """Attention of a tower over a range of patches at a time, each a part of the work.

    Without that, the scores of one screenshot take gigabytes, and nothing else runs for seconds.
    """

    def __init__(self, attend: Callable[..., mx.array], results: list[mx.array]) -> None:
        """Create a replacement of mlx-vlm's function `attend`, which is for GPUs: it pads the heads."""
        is_cpu = mx.default_device() == mx.Device(mx.cpu)
        self._attend = _attend_on_cpu if is_cpu else attend
        self._max_scores = _MAX_SCORES_CPU if is_cpu else _MAX_SCORES_GPU
        self._results = results

    def __call__(
        self, queries: mx.array, keys: mx.array, values: mx.array, scale: float
    ) -> mx.array:
        """Return the attention of queries of shape (1, H, L, D) to all keys and values."""
        _, num_heads, num_patches, _ = queries.shape
        block_len = max(1, self._max_scores // (num_heads * num_patches))
        blocks = [
            self._attend(queries[:, :, start : start + block_len], keys, values, scale)
            for start in range(0, num_patches, block_len)
        ]
        self._results += blocks
        return blocks[0] if len(blocks) == 1 else mx.concatenate(blocks, axis=2)


def _attend_on_cpu(queries: mx.array, keys: mx.array, values: mx.array, scale: float) -> mx.array:
    return mx.fast.scaled_dot_product_attention(queries, keys, values, scale=scale)


class QwenTower:
    """The tower and the image processor of Qwen's models since Qwen3-VL."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        """Read the sizes of pictures that the model accepts. The weights are read later.

        Args:
            folder: the folder of the model.
            config: its config.json.
        """
        self._folder = folder
        self._config = config
        processing: Any = import_part("processing_qwen3_vl")
        # The folder is absolute, so mlx-vlm does not take it for a repository and opens no connection.
        options = processing._qwen_vl_image_kwargs(folder.absolute())  # noqa: SLF001 (has no public name)
        self._processor: Any = processing.Qwen3VLImageProcessor(**options)
        # The settings by which pixels become patches, as text
        self.form = json.dumps(options, sort_keys=True)
        self._model: Any = None
        self._dtype = mx.float32  # of the first layer

    def grid(self, width: int, height: int) -> tuple[int, int]:
        """Return the rows and columns of tokens that a picture takes.

        Raises:
            PictureError: the model accepts no picture of this form.
        """
        try:
            rows, columns = self._processor._resolved_size(height, width)  # noqa: SLF001 (has no public name)
        except ValueError as error:
            cause = f"A picture of {width:,} by {height:,} pixels is too narrow for this model."
            raise PictureError(cause, advice="Cut it to a wider part.") from error
        side = self._processor.patch_size * self._processor.merge_size
        return rows // side, columns // side

    def patches(self, pixels: np.ndarray) -> Patches:
        """Divide a picture into patches. Any thread.

        pixels: RGB values from 0 to 255, of shape (3, height, width).
        """
        values, grid = self._processor._process_one(pixels)  # noqa: SLF001 (its public form takes files)
        return Patches(values, tuple(grid))

    def encode(self, patches: Patches) -> tuple[EncodedPicture, Sequence[mx.array]]:
        """Return the embeddings of a picture, and the parts of the work of the tower, all lazily.

        A part depends only on those before it.
        """
        tower, results = self._loaded(), list[mx.array]()
        values = mx.array(patches.values).astype(self._dtype)
        module = sys.modules[type(tower.blocks[0].attn).__module__]
        attend = getattr(module, _ATTEND)
        setattr(module, _ATTEND, _AttentionInBlocks(attend, results))
        try:
            embeddings, features = tower(values, mx.array([patches.grid]))
        finally:
            setattr(module, _ATTEND, attend)
        merge = self._processor.merge_size
        _, rows, columns = patches.grid
        grid = (rows // merge, columns // merge)
        return EncodedPicture(embeddings[None], grid, tuple(features)), [*results, *features]

    def release(self) -> None:
        """Drop the weights. The next picture reads them again."""
        self._model = None

    def _loaded(self) -> Any:
        if self._model is None:
            tower = make_tower(self._config)
            weights = tower.sanitize(tower_weights(self._folder))
            _quantise(tower, weights, self._config)
            tower.load_weights(list(weights.items()))
            tower.eval()
            self._dtype = tower.patch_embed.proj.weight.dtype
            self._model = tower
        return self._model


def tower_weights(folder: Path) -> dict[str, mx.array]:
    """Return the tower's weights of a model folder, lazily, by their names within the tower."""
    found: dict[str, mx.array] = {}
    for path in sorted(folder.glob("*.safetensors")):
        arrays = cast("dict[str, mx.array]", mx.load(str(path)))
        for name, array in arrays.items():
            prefix = next((one for one in TOWER_NAMES if name.startswith(one)), "")
            if prefix:
                found[name.removeprefix(prefix)] = array
    if mx.default_device() == mx.Device(mx.cpu):
        # MLX's CPU backend is unusably slow in half precision.
        found = {
            name: array.astype(mx.float32) if mx.issubdtype(array.dtype, mx.floating) else array
            for name, array in found.items()
        }
    return found


def _quantise(tower: nn.Module, weights: Mapping[str, mx.array], config: Mapping[str, Any]) -> None:
    """Quantise the layers of a tower whose weights are quantised.

    The settings in config.json are for all layers, or for one by its name.
    """
    settings: Mapping[str, Any] = config.get("quantization") or {}

    def settings_of(name: str, _: nn.Module) -> bool | dict[str, Any]:
        if f"{name}.scales" not in weights:
            return False
        names = (f"{prefix}{name}" for prefix in TOWER_NAMES)
        own = next((settings[one] for one in names if isinstance(settings.get(one), dict)), None)
        return True if own is None else own

    if settings:
        common = {key: settings[key] for key in ("group_size", "bits", "mode") if key in settings}
        nn.quantize(tower, **common, class_predicate=settings_of)


def make_tower(config: Mapping[str, Any]) -> Any:
    """Return the tower of a config.json, with random weights.

    All types have the same tower. mlx-vlm's copy for Qwen3-VL's experts has the two kinds of GELU the
    wrong way round, so it is not used.
    """
    settings = {**config["vision_config"], "model_type": "qwen3_vl"}
    parameters: Any = import_part("config").VisionConfig.from_dict(settings)
    return import_part("vision").VisionModel(parameters)


def import_part(name: str) -> Any:
    """Import a module of mlx-vlm's Qwen3-VL without the code of the packages around it.

    That code imports language models, a server, a command line, and libraries that the app does not have.
    """
    for package in _PACKAGES:
        if package not in sys.modules:
            parent, _, child = package.rpartition(".")
            module = ModuleType(package)
            if parent:
                module.__path__ = [f"{place}/{child}" for place in sys.modules[parent].__path__]
            else:
                spec = find_spec(package)
                assert spec is not None
                module.__path__ = list(spec.submodule_search_locations or ())
            sys.modules[package] = module
    return importlib.import_module(f"{_PACKAGES[-1]}.{name}")
