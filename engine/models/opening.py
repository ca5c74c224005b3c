"""Read the weights of a model into memory: the whole model, or one stage of it.

loader.py tests what is opened here and makes a LoadedModel of it. engine/pipeline/last_stage.py has
the opener of a model whose other layers are in other processes. Use on the engine thread.
"""

# mlx.nn and mlx.utils have few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol, cast

import mlx.core as mx
from mlx import nn
from mlx.utils import tree_flatten

from engine.cache.layout import Layout
from engine.cache.trees import evaluate
from engine.models.adapter import ModelAdapter
from engine.models.attention import attend_in_pieces
from engine.models.float32 import as_float32
from engine.models.mtp_files import build_model
from engine.models.rewinding import record_recurrences

# Number of bytes of weights that are loaded between two progress reports.
_GROUP_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class StageMemory:
    """The memory of a stage in another process, as that process reports it."""

    layout: Layout
    weight_bytes: int
    spare_bytes: int  # bytes of device memory that the weights leave free
    budget_bytes: int  # highest number of bytes of cached state
    can_merge: bool  # True if its layers can serve several conversations in one pass


@dataclass(frozen=True, slots=True)
class UntestedModel:
    """A model whose weights are in memory, before it is tested."""

    adapter: ModelAdapter  # without quantised K/V
    config: dict[str, Any]
    kv_bits: int | None = None  # bits of K/V that may be quantised; None: none are
    head_fault: str = ""  # see BuiltModel
    # The stages in other processes, rank 1 first. Empty if this process has the whole model.
    others: tuple[StageMemory, ...] = ()


class ModelOpener(Protocol):
    """The way in which the weights of a model folder are loaded."""

    @property
    def namespace(self) -> str:
        """A text of all that cached state depends on besides the model folder."""
        ...

    @property
    def needs_all(self) -> bool:
        """True if all weight files of the folder must be there."""
        ...

    def open(
        self, path: Path, progress: Callable[[int, int], None], kv_bits: int | None
    ) -> UntestedModel:
        """Load the weights. Raise any error if they don't fit the model."""
        ...

    def rest(self) -> float | None:
        """Save energy until the next forward pass, if there was no pass for a while.

        Called while the engine has no work.

        Returns:
            The seconds after which to call this method again. None if that is of no use.
        """
        ...


class WholeModel:
    """Load the whole model into this process."""

    namespace = ""
    needs_all = True

    def open(
        self, path: Path, progress: Callable[[int, int], None], kv_bits: int | None
    ) -> UntestedModel:
        built = build_model(path)
        stored = sum(array.nbytes for array in _weights(built.model))
        if mx.default_device() == mx.Device(mx.cpu):
            built = replace(built, model=as_float32(built.model))

        def report(done: int, total: int) -> None:
            # On the CPU the weights take more memory than the files, which are what a user knows.
            progress(done * stored // max(1, total), stored)

        read_weights(_weights(built.model), report)
        built = built.tested()
        model = built.model
        attend_in_pieces()
        record_recurrences()
        return UntestedModel(ModelAdapter(model), built.config, kv_bits, built.head_fault)

    def rest(self) -> float | None:
        return None


WHOLE: Final = WholeModel()


def _weights(model: nn.Module) -> list[mx.array]:
    parameters = cast("list[tuple[str, mx.array]]", tree_flatten(model.parameters()))
    return [array for _, array in parameters]


def read_weights(weights: Sequence[mx.array], progress: Callable[[int, int], None]) -> None:
    """Read lazy weights into memory in groups. Report the progress after each group.

    If `progress` raises an exception, the loading ends.
    """
    total = sum(array.nbytes for array in weights)
    loaded = pending = 0
    group: list[mx.array] = []
    progress(0, total)
    for array in weights:
        group.append(array)
        pending += array.nbytes
        if pending >= _GROUP_BYTES:
            evaluate(group)
            loaded, pending = loaded + pending, 0
            group.clear()
            progress(loaded, total)
    evaluate(group)
    progress(total, total)
