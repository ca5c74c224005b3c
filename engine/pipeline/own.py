"""The part of a model that one stage holds: loaded from disk, checked and measured.

Only the stage's own weights are read: the parameters that the results of its layers depend on. A
foreign layer's weights and experts are never evaluated, and their files may be missing. An own
parameter that is in no file is an error, for mlx-lm would fill it with random numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import mlx.core as mx
from typing_extensions import override

from engine.cache.layout import Layout, Leaves, measure_layout
from engine.cache.trees import arrays_in, tree_bytes
from engine.catalog.architectures import installed_architectures
from engine.catalog.model_config import read_config
from engine.errors import ModelFolderError
from engine.models.adapter import ModelAdapter
from engine.models.attention import attend_in_pieces
from engine.models.float32 import as_float32
from engine.models.opening import read_weights
from engine.models.partial import PartlyStored, load_partly, parameters_of, used_arrays
from engine.pipeline.exact import EXACT_TYPES
from engine.pipeline.split import PartOfModel
from engine.pipeline.trace import LayerTrace, UnsplittableError, trace_layers
from engine.vision.tower_module import tower_files

# Number of tokens of the lazy call that finds the used parameters.
_NUM_TOKENS = 2


_P = TypeVar("_P", bound="OwnLayers")


@dataclass(frozen=True, slots=True)
class OwnPart(Generic[_P]):
    """A stage's part of a model, with its weights in memory."""

    part: _P
    config: dict[str, Any]
    layout: Layout  # of the own layers


class OwnLayers(PartOfModel):
    """The own layers of a stage, which knows the bytes of its weights."""

    own_bytes = 0

    @property
    @override
    def weight_bytes(self) -> int:
        return self.own_bytes

    def used(self, arrays: Mapping[str, mx.array]) -> dict[str, mx.array]:
        """Return those of the named arrays that the own layers use. Compute nothing."""
        caches = self.new_caches()
        ids = mx.zeros((1, _NUM_TOKENS), mx.int32)
        logits, sent = self.pass_through(ids, caches, self.stand_in(_NUM_TOKENS), 0)
        leaves = Leaves.of(caches)
        results = (logits if self.is_last else sent, leaves.buffers, leaves.states)
        return used_arrays(arrays, list(arrays_in(results)))


def require_exact(folder: Path) -> None:
    """Refuse a type of model that is not known to be exact in several stages.

    Raises:
        ModelFolderError: the type is not in the table of exact types.
    """
    config = read_config(folder)
    module = installed_architectures().module(config.model_type, config.classes)
    if module not in EXACT_TYPES:
        raise ModelFolderError(
            f"{folder.name} has the architecture {config.model_type[:60]}, "
            "which is not exact when it is divided.",
            advice="Use it on one Mac, or choose another model for several Macs.",
        )


def require_tower(folder: Path) -> None:
    """Refuse a folder that lacks a weight file of the vision tower. Rank 0 reads all pictures.

    Raises:
        ModelFolderError: a file is missing.
    """
    missing = sorted(name for name in tower_files(folder) if not (folder / name).is_file())
    if missing and read_config(folder).sees:
        raise ModelFolderError(
            f"{folder.name} lacks weights of its vision tower, for example {missing[0]}.",
            advice="Copy the missing weight files to this Mac.",
        )


def traced(folder: Path, *, keeps_tensors: bool = False) -> tuple[PartlyStored, LayerTrace]:
    """Return the lazy model of a folder as load_partly gives it, and its trace.

    Raises:
        UnsplittableError: the model cannot be divided by layers.
    """
    loaded = load_partly(folder, keeps_tensors=keeps_tensors)
    return loaded, trace_layers(loaded.model, ModelAdapter(loaded.model).new_caches())


def load_own_part(
    folder: Path, start: int, end: int, progress: Callable[[int, int], None], *, kind: type[_P]
) -> OwnPart[_P]:
    """Load the layers [start, end) of the model in a folder, with what belongs to them.

    Args:
        folder: the model folder. Weight files without own parameters may be missing.
        start: number of the first own layer.
        end: number of the first layer after the own ones.
        progress: called with the number of loaded bytes and the total number of bytes.
        kind: the class of the result's part.

    Raises:
        ModelFolderError: the model cannot be divided here, or an own parameter is missing.
    """
    try:
        loaded, trace = traced(folder)
        part = kind(loaded.model, trace, start, end)
    except UnsplittableError as error:
        raise ModelFolderError(
            f"{folder.name} cannot be divided: {error}.",
            advice="Use it on one Mac, or choose another model for several Macs.",
        ) from error
    missing = sorted(part.used(parameters_of(loaded.model)).keys() - loaded.stored)
    if missing:
        raise ModelFolderError(
            f"{folder.name} lacks {len(missing)} of the weights of layers {start + 1} to {end}, "
            f"for example {missing[0]}.",
            advice="Copy the missing weight files to this Mac.",
        )
    if mx.default_device() == mx.Device(mx.cpu):
        as_float32(loaded.model)
    used = part.used(parameters_of(loaded.model)).values()
    own = list({id(array): array for array in used}.values())
    read_weights(own, progress)
    part.own_bytes = tree_bytes(own)
    attend_in_pieces()
    return OwnPart(part, loaded.config, _measured(part))


def _measured(part: OwnLayers) -> Layout:
    """Return the layout of the own layers. Nothing is computed."""
    caches = part.new_caches()
    ids = mx.zeros((1, _NUM_TOKENS), mx.int32)
    part.pass_through(ids, caches, part.stand_in(_NUM_TOKENS), 0)
    return measure_layout(caches, _NUM_TOKENS, tree_bytes)
