"""The plan of a model in several stages: which layers each machine gets, by its memory.

`measure_model` reads the sizes of a model from its shapes, without its weights. `divide` is pure:
it gives each rank consecutive layers so that the fullest machine, relative to its memory, is as
empty as possible. `plan_stages` does both. Rank 0 has the last layers, the head and the vision
tower, the highest rank the embedding and the first layers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import mlx.core as mx
from mlx import nn

from engine.cache.layout import Layout, measure_layout
from engine.cache.trees import tree_bytes
from engine.catalog.model_config import read_config
from engine.catalog.weights import INDEX_NAME
from engine.errors import MemoryFullError, ModelFolderError
from engine.models.adapter import ModelAdapter
from engine.models.float32 import as_float32
from engine.models.partial import parameters_of
from engine.pipeline.own import OwnLayers, require_exact, traced
from engine.pipeline.trace import UnsplittableError, layers_of
from engine.sizes import size_of
from engine.vision.tower_module import tower_files, tower_weights

# State for which each stage keeps room beside its weights.
_NUM_TOKENS: Final = 32_768
_NUM_SNAPSHOTS: Final = 4


@dataclass(frozen=True, slots=True)
class LayerSizes:
    """The bytes of one layer."""

    weight_bytes: int
    kv_bytes_per_token: int = 0
    snapshot_bytes: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of weights and of the state for which room is kept."""
        state = self.kv_bytes_per_token * _NUM_TOKENS + self.snapshot_bytes * _NUM_SNAPSHOTS
        return self.weight_bytes + state


@dataclass(frozen=True, slots=True)
class ModelSizes:
    """The bytes of a model's layers, and of what lies before and behind them."""

    layers: tuple[LayerSizes, ...]
    front_bytes: int  # weights before the layers: the embedding
    back_bytes: int  # weights behind the layers: norm and head; and those of the vision tower
    # Numbers of the layers before which the model can be cut.
    cuts: frozenset[int]


@dataclass(frozen=True, slots=True)
class StageShare:
    """The share of one stage."""

    first_layer: int
    last_layer: int
    weight_bytes: int
    kv_bytes_per_token: int
    snapshot_bytes: int


@dataclass(frozen=True, slots=True)
class StagePlan:
    """The division of a model, rank 0 first."""

    layers: tuple[int, ...]  # number of layers of each rank, for StageJob.layers
    stages: tuple[StageShare, ...]


def plan_stages(folder: Path, free_bytes: Sequence[int]) -> StagePlan:
    """Divide the model of a folder. Its weights are not read.

    Args:
        folder: the model folder. All of its weight files must be there.
        free_bytes: memory for the model on the machine of each rank, rank 0 first.

    Raises:
        ModelFolderError: the model is not exact in several stages, or cannot be divided so.
        MemoryFullError: it does not fit.
    """
    return divide(measure_model(folder), free_bytes)


def divide(sizes: ModelSizes, free_bytes: Sequence[int]) -> StagePlan:
    """Give each rank at least one layer, so that the largest share of used memory is smallest.

    Raises:
        ModelFolderError: the model cannot be cut into so many parts.
        MemoryFullError: the parts do not fit.
    """
    num_layers, num_ranks = len(sizes.layers), len(free_bytes)
    needed = [0]
    for layer in sizes.layers:
        needed.append(needed[-1] + layer.nbytes)

    def load(start: int, end: int, rank: int) -> float:
        """Return the share of a rank's memory that the layers [start, end) take."""
        edges = (start == 0) * sizes.front_bytes + (end == num_layers) * sizes.back_bytes
        return (needed[end] - needed[start] + edges) / max(1, free_bytes[rank])

    @cache
    def best(start: int, rank: int) -> tuple[float, tuple[int, ...]]:
        """Return the largest load and ends of ranks `rank` to 0 for the layers from start on."""
        if rank == 0:
            return load(start, num_layers, 0), (num_layers,)
        found: tuple[float, tuple[int, ...]] = (math.inf, ())
        for end in range(start + 1, num_layers):
            if end in sizes.cuts:
                rest, ends = best(end, rank - 1)
                found = min(found, (max(load(start, end, rank), rest), (end, *ends)))
        return found

    share, ends = best(0, num_ranks - 1)
    if len(ends) != num_ranks:
        raise ModelFolderError(
            f"It cannot be divided into {num_ranks} parts.", advice="Use fewer Macs."
        )
    if share > 1:
        total = needed[-1] + sizes.front_bytes + sizes.back_bytes
        raise MemoryFullError(
            f"It needs about {size_of(total)}, divided by layers, and the Macs can give "
            f"{size_of(sum(free_bytes))}."
        )
    return _plan(sizes, ends)


def _plan(sizes: ModelSizes, ends: Sequence[int]) -> StagePlan:
    shares: list[StageShare] = []
    for start, end in zip((0, *ends), ends, strict=False):
        own = sizes.layers[start:end]
        edges = (start == 0) * sizes.front_bytes + (end == len(sizes.layers)) * sizes.back_bytes
        shares.append(
            StageShare(
                first_layer=start,
                last_layer=end - 1,
                weight_bytes=edges + sum(layer.weight_bytes for layer in own),
                kv_bytes_per_token=sum(layer.kv_bytes_per_token for layer in own),
                snapshot_bytes=sum(layer.snapshot_bytes for layer in own),
            )
        )
    shares.reverse()
    layers = tuple(share.last_layer - share.first_layer + 1 for share in shares)
    return StagePlan(layers, tuple(shares))


def measure_model(folder: Path) -> ModelSizes:
    """Return the sizes of the model in a folder. Its weights are not read.

    Raises:
        ModelFolderError: the model is not exact in several stages.
    """
    require_exact(folder)
    try:
        front, layers, layouts, cuts = _measured(folder, is_front=True)
        back, *_ = _measured(folder, is_front=False)
    except UnsplittableError as error:
        raise ModelFolderError(f"{folder.name} cannot be divided: {error}.") from error
    return ModelSizes(
        tuple(
            LayerSizes(num_bytes, layout.kv_bytes_per_token, layout.snapshot_bytes)
            for num_bytes, layout in zip(layers, layouts, strict=True)
        ),
        front,
        back + (tree_bytes(tower_weights(folder)) if read_config(folder).sees else 0),
        cuts,
    )


def _measured(
    folder: Path, *, is_front: bool
) -> tuple[int, list[int], list[Layout], frozenset[int]]:
    """Return the bytes before or behind the layers, those of the layers, layouts and cuts."""
    loaded, trace = traced(folder)
    model = loaded.model
    if mx.default_device() == mx.Device(mx.cpu):
        as_float32(model)
    cuts = frozenset(range(1, trace.num_layers)) - trace.refusals.keys()
    if not cuts:
        raise UnsplittableError(next(iter(trace.refusals.values()), "it has one layer"))
    in_layers = [parameters_of(layer) for layer in layers_of(model)]
    layouts = _layouts(model, trace.users, trace.num_layers)
    cut = min(cuts)
    span = (0, cut) if is_front else (cut, trace.num_layers)
    part = OwnLayers(model, trace, *span)
    inner = {id(array) for layer in in_layers for array in layer.values()}
    outer = {id(x): x for x in part.used(parameters_of(model)).values() if id(x) not in inner}
    sizes = [tree_bytes(layer) for layer in in_layers]
    return tree_bytes(list(outer.values())), sizes, layouts, cuts


def _layouts(model: nn.Module, users: Sequence[set[int]], num_layers: int) -> list[Layout]:
    """Return the layout of each layer's caches, from a lazy pass."""
    adapter = ModelAdapter(model)
    caches = adapter.new_caches()
    adapter.run(mx.array([[1, 2]], mx.int32), caches)
    by_layer: list[list[object]] = [[] for _ in range(num_layers)]
    for cache_of_layer, layers in zip(caches, users, strict=True):
        by_layer[min(layers)].append(cache_of_layer)
    return [measure_layout(own, 2, tree_bytes) for own in by_layer]


def needed_files(folder: Path, start: int, end: int) -> list[str]:
    """Return the names of the weight files that the stage of the layers [start, end) reads.

    Raises:
        UnsplittableError: the model cannot be divided here.
    """
    loaded, trace = traced(folder, keeps_tensors=True)
    part = OwnLayers(loaded.model, trace, start, end)
    used = part.used(loaded.tensors)
    index = folder / INDEX_NAME
    if not index.is_file():
        return sorted(path.name for path in folder.glob("model*.safetensors"))
    places: dict[str, str] = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
    has_tower = part.is_last and read_config(folder).sees
    return sorted({places[name] for name in used} | (tower_files(folder) if has_tower else set()))
