"""One lazy call of a model, watched: which layer uses which cache, and what goes between layers.

Nothing is computed: the arrays of the call are never evaluated, so no weight is read from disk. The
result tells at which layers a model can be cut in two (LayerTrace.refusal). No code depends on the
type of the model.

A layer is watched by a class of its own, made from the layer's class with another `__call__`. The
layer stays the same object in the same place, so the model's own code finds in it what it expects.
"""

# mlx.nn has few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import mlx.core as mx
from mlx import nn

from engine.pipeline.paths import Path, array_paths, map_paths

# The token ids of the watched call. Every vocabulary contains them.
_TOKEN_IDS = (1, 2)

# Function that is called in place of a layer: the layer's own call, its arguments, its keywords.
LayerCall = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]


class UnsplittableError(Exception):
    """The error if a model cannot be divided by layers. The message is the reason."""


@dataclass(frozen=True, slots=True)
class Slot:
    """An array in a layer's result: its shape and type, and the argument that has the same role."""

    shape: tuple[int, ...]
    dtype: mx.Dtype
    source: Path | None  # path of that argument in (args, kwargs); None if there is none


@dataclass(frozen=True, slots=True)
class Crossing:
    """Arrays that go from a layer to the next: paths in its result, and in the next one's call."""

    given: tuple[Path, ...]
    taken: tuple[Path, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[mx.Dtype, ...]


@dataclass(slots=True)
class LayerTrace:
    """The result of a watched call."""

    num_layers: int
    # For each cache of the model: the layers that are given it.
    users: list[set[int]] = field(default_factory=list[set[int]])
    # For each layer from 1 on: what it takes from the layer before. Item 0 is unused.
    crossings: list[Crossing] = field(default_factory=list[Crossing])
    # For each layer: its result, with a Slot in the place of each array.
    results: list[Any] = field(default_factory=list[Any])
    # Reasons why the model cannot be cut before a layer, by layer.
    refusals: dict[int, str] = field(default_factory=dict[int, str])

    def require(self, cuts: Sequence[int]) -> None:
        """Raise UnsplittableError if the model cannot be cut before one of these layers."""
        for cut in cuts:
            if cut in self.refusals:
                raise UnsplittableError(f"before layer {cut}: {self.refusals[cut]}")


def layers_of(model: nn.Module) -> list[nn.Module]:
    """Return the layers of a model, in the order in which they run."""
    layers: Any = getattr(model, "layers", None)
    if not isinstance(layers, (list, tuple)) or not layers:
        raise UnsplittableError("its layers are not in one list")
    found = list(cast("list[Any]", layers))
    if not all(isinstance(layer, nn.Module) for layer in found):
        raise UnsplittableError("some of its layers are missing")
    if len({id(layer) for layer in found}) != len(found):
        raise UnsplittableError("a layer runs more than once")
    return found


def replace_call(layer: nn.Module, call: LayerCall) -> None:
    """Let calls of a layer go through another function. The layer's class stays a base class."""
    kind = type(layer)

    def calling(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        return call(lambda *a, **k: cast("Any", kind).__call__(self, *a, **k), args, kwargs)

    layer.__class__ = type(kind.__name__, (kind,), {"__call__": calling})


@dataclass(slots=True)
class _Calls:
    """The arguments and results of all layers in one call of the model."""

    order: list[int] = field(default_factory=list[int])
    arguments: dict[int, tuple[tuple[Any, ...], dict[str, Any]]] = field(default_factory=dict)
    results: dict[int, Any] = field(default_factory=dict)


@contextmanager
def _watched(layers: Sequence[nn.Module]) -> Generator[_Calls]:
    calls = _Calls()
    kinds = [type(layer) for layer in layers]

    def watch(index: int) -> LayerCall:
        def call(own: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            result = own(*args, **kwargs)
            calls.order.append(index)
            calls.arguments[index], calls.results[index] = (args, kwargs), result
            return result

        return call

    try:
        for index, layer in enumerate(layers):
            replace_call(layer, watch(index))
        yield calls
    finally:
        for layer, kind in zip(layers, kinds, strict=True):
            layer.__class__ = kind


def trace_layers(model: nn.Module, caches: Sequence[object]) -> LayerTrace:
    """Watch one lazy call of a model.

    Args:
        model: a whole model. Its weights may be lazy, and are not read.
        caches: empty caches of the model.

    Raises:
        UnsplittableError: the model cannot be divided by layers.
    """
    layers = layers_of(model)
    with _watched(layers) as calls:
        cast("Any", model)(mx.array([_TOKEN_IDS], mx.int32), cache=caches)
    if calls.order != list(range(len(layers))):
        raise UnsplittableError("its layers do not run once each, one after the other")
    trace = LayerTrace(len(layers))
    trace.users = [
        {i for i, (args, kwargs) in calls.arguments.items() if _has(cache, args, kwargs)}
        for cache in caches
    ]
    if any(not users for users in trace.users):
        raise UnsplittableError("a cache is used outside of the layers")
    _find_crossings(trace, calls)
    for users in trace.users:
        for cut in range(min(users) + 1, max(users) + 1):
            trace.refusals[cut] = "layers on both sides share a cache"
    return trace


def _has(cache: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return any(value is cache for value in (*args, *kwargs.values()))


def _find_crossings(trace: LayerTrace, calls: _Calls) -> None:
    """Find what goes from layer to layer, and what makes a cut impossible."""
    makers: dict[int, int] = {}  # id of an array: the first layer that returned it
    for index in range(trace.num_layers):
        given = dict[int, Path]()
        for path, array in array_paths(calls.results[index - 1]) if index else ():
            given.setdefault(id(array), path)
        taken = list(array_paths(calls.arguments[index]))
        pairs = [(given[id(array)], path, array) for path, array in taken if id(array) in given]
        trace.crossings.append(
            Crossing(
                tuple(source for source, _, _ in pairs),
                tuple(path for _, path, _ in pairs),
                tuple(array.shape for _, _, array in pairs),
                tuple(array.dtype for _, _, array in pairs),
            )
        )
        if index and not pairs:
            trace.refusals[index] = "something is computed between two layers"
        for _, array in taken:
            if id(array) in makers and id(array) not in given:
                for cut in range(makers[id(array)] + 1, index + 1):
                    trace.refusals[cut] = "a later layer uses the result of an earlier one"
        for _, array in array_paths(calls.results[index]):
            makers.setdefault(id(array), index)
    trace.results = [_slots(trace, calls, index) for index in range(trace.num_layers)]


def _slots(trace: LayerTrace, calls: _Calls, index: int) -> Any:
    """Return a layer's result with a Slot in the place of each array.

    A result that the next layer takes as an argument has the role of that argument: a skipped layer
    returns its own argument of the same path. The last layer has the roles of the layer before.
    """
    crossing = trace.crossings[min(index + 1, trace.num_layers - 1)]
    roles = dict(zip(crossing.given, crossing.taken, strict=True))
    arguments = list(array_paths(calls.arguments[index]))

    def slot(path: Path, array: mx.array) -> Slot:
        like = [at for at, x in arguments if x.shape == array.shape and x.dtype == array.dtype]
        role = roles.get(path)
        source = role if role in like else next(iter(like), None)
        return Slot(array.shape, array.dtype, source)

    return map_paths(slot, calls.results[index])
