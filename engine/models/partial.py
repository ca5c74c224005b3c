"""Load a model folder of which only some weights are needed, and find out which.

The weights are lazy, and only those that are evaluated are read from disk. Weight files without
needed tensors may be missing: mlx-lm then keeps random numbers in their place, which are never
evaluated. `used_arrays` finds the parameters that given results depend on. Use on the engine
thread.
"""

# mlx-lm, mlx.nn and mlx.utils have few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import mlx.core as mx
from mlx import nn
from mlx.utils import tree_flatten
from mlx_lm.utils import _get_classes, load_model

# An edge of a graph in the DOT language: from an array to an operation, or from there to an array.
_EDGE: Final = re.compile(r"(\"\w+\"|\d+) -> (\"\w+\"|\d+)")


@dataclass(frozen=True, slots=True)
class PartlyStored:
    """A model with lazy weights, and the names of the parameters that its files contain."""

    model: nn.Module
    config: dict[str, Any]
    stored: frozenset[str]
    # The tensors of the files, by their names in the files. Empty unless they were asked for.
    tensors: dict[str, mx.array]


def load_partly(folder: Path, *, keeps_tensors: bool = False) -> PartlyStored:
    """Build the model of a folder whose weight files need not be complete. The weights are lazy.

    Args:
        folder: the model folder.
        keeps_tensors: True to keep the tensors as they are in the files. They would stay in memory
            beside the parameters that are made from them, so nothing may be evaluated then.

    Raises:
        Exception: as mlx-lm's load_model.
    """
    stored = set[str]()
    tensors = dict[str, mx.array]()

    def classes(config: dict[str, Any]) -> tuple[type[Any], type[Any]]:
        model_class, args_class = _get_classes(config)

        def load_weights(self: Any, weights: list[tuple[str, mx.array]], strict: bool) -> Any:  # noqa: FBT001 — mlx's signature
            stored.update(name for name, _ in weights)
            if keeps_tensors and not tensors:
                tensors.update(weights)
            return model_class.load_weights(self, weights, strict=strict)

        def sanitize(self: Any, weights: dict[str, mx.array]) -> dict[str, mx.array]:
            if keeps_tensors:
                tensors.update(weights)
            return model_class.sanitize(self, weights)

        methods: dict[str, Any] = {"load_weights": load_weights}
        if hasattr(model_class, "sanitize"):
            methods["sanitize"] = sanitize
        return type(model_class.__name__, (model_class,), methods), args_class

    loaded = load_model(folder, lazy=True, strict=False, get_model_classes=classes)
    model, config = cast("tuple[nn.Module, dict[str, Any]]", loaded)
    found = dict(tensors)
    # Classes are freed by garbage collection only, and `classes` references the dict.
    tensors.clear()
    return PartlyStored(model, config, frozenset(stored), found)


def parameters_of(model: nn.Module) -> dict[str, mx.array]:
    return dict(cast("list[tuple[str, mx.array]]", tree_flatten(model.parameters())))


def used_arrays(arrays: Mapping[str, mx.array], results: Sequence[mx.array]) -> dict[str, mx.array]:
    """Return those of the named arrays that lazy results depend on. Compute nothing."""
    # An array that two names share (tied weights) appears once in the graph.
    labels: dict[int, str] = {}
    for number, array in enumerate(arrays.values()):
        labels.setdefault(id(array), f"p{number}")
    labelled = {labels[id(array)]: array for array in arrays.values()}
    ends = {f"r{number}": array for number, array in enumerate(results)}
    reached = _reached(_edges(labelled | ends), {f'"{name}"' for name in ends})
    return {name: array for name, array in arrays.items() if f'"{labels[id(array)]}"' in reached}


def _edges(arrays: dict[str, mx.array]) -> dict[str, list[str]]:
    """Return for each node of the graph that leads to these arrays the nodes before it."""
    text = io.StringIO()
    mx.export_to_dot(text, **arrays)
    edges: dict[str, list[str]] = {}
    for before, after in _EDGE.findall(text.getvalue()):
        edges.setdefault(after, []).append(before)
    return edges


def _reached(edges: dict[str, list[str]], ends: set[str]) -> set[str]:
    reached, pending = set(ends), list(ends)
    while pending:
        for before in edges.get(pending.pop(), ()):
            if before not in reached:
                reached.add(before)
                pending.append(before)
    return reached
