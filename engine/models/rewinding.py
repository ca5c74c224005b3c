"""Rewind recurrent states to an earlier token of the newest forward pass.

A verify pass of speculative decoding (runner/decoder.py) feeds the newest token of a reply and some
drafted tokens. Drafts that the model does not confirm must be removed from the caches. Attention
K/V are cut. A recurrent state cannot be cut, so it is computed once more, for the kept tokens only:

- While the pass is built, `recording` notes the arguments of each recurrent function and the input
  of each convolution. The loader calls `record_recurrences` after each load of a model, which
  replaces these functions in mlx-lm's modules by functions that note their arguments.
- `Rewinding.states` calls the recurrent functions again, with the arguments of the kept tokens. The
  window of a convolution is a slice of the convolution's noted input.

The rotating window of a sliding attention layer cannot be cut either. A pass of several tokens
replaces its arrays, so `WindowBefore` keeps the old ones, and appends the kept tokens to them
again.

Neither runs a layer of the model again. The states do not depend on the removed tokens: another
draft of the same length leaves the same bits. `find_rewinding` tests this once when a model is
loaded. Models whose states are computed by other functions are not rewound: they answer without
speculation. Use on the engine thread.
"""

# mlx-lm and mlx.nn have few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Self, cast

import mlx.core as mx
from mlx import nn
from mlx_lm.models import gated_delta, ssm
from mlx_lm.models.cache import RotatingKVCache

from engine.cache.layout import AuxLeaf, Leaves, leaves_of
from engine.cache.trees import arrays_in, owned

# The recurrent functions of mlx-lm, and the names of their arguments of shape (B, L, ...). Each
# returns its outputs and the state after the last token. The argument `state` has the state before
# the first token. All other arguments are parameters of the layer.
_UPDATE_DELTA = cast("Callable[..., Any]", gated_delta.gated_delta_update)
_UPDATE_SSM = cast("Callable[..., Any]", ssm.ssm_update)
_TIMED = {_UPDATE_DELTA: ("q", "k", "v", "a", "b"), _UPDATE_SSM: ("hidden_states", "B", "C", "dt")}


@dataclass(frozen=True, slots=True)
class _Call:
    """One call of a recurrent function, for all rows of a pass."""

    function: Callable[..., Any]
    arguments: dict[str, Any]
    state: mx.array  # state after the last token, shape (B, ...)

    def state_after(self, rows: slice, num_tokens: int) -> mx.array:
        """Return the state of some rows after the first num_tokens tokens of the pass."""
        arguments = dict(self.arguments)
        for name in _TIMED[self.function]:
            arguments[name] = arguments[name][rows, :num_tokens]
        if arguments.get("state") is not None:
            arguments["state"] = arguments["state"][rows]
        return self.function(**arguments)[1]


@dataclass(frozen=True, slots=True)
class Recording:
    """Arguments of the recurrent functions and convolutions of one pass, in the order of calls."""

    calls: list[_Call] = field(default_factory=list[_Call])
    # Inputs of convolutions, of shape (B, window + L, C).
    inputs: list[mx.array] = field(default_factory=list[mx.array])


# The recordings of all active `recording` contexts.
_recordings: list[Recording] = []


@contextmanager
def recording() -> Generator[Recording]:
    """Note the arguments of recurrent functions in a pass that is built inside the with block."""
    recorded = Recording()
    _recordings.append(recorded)
    try:
        yield recorded
    finally:
        _recordings.remove(recorded)


def note_input(x: mx.array) -> None:
    """Note an array of shape (B, window + L, C) like the input of a convolution.

    Its first `window` items are the state before a pass of L tokens, and its last ones the state
    after the pass.
    """
    for recorded in _recordings:
        recorded.inputs.append(x)


def record_recurrences() -> None:
    """Replace the recurrent functions in all model modules of mlx-lm that are imported so far.

    Call after each load of a model, because loading imports the module of the model's architecture.
    Modules that already have the replacement stay as they are.
    """
    nn.Conv1d.__call__ = _convolve
    for name, module in list(sys.modules.items()):
        if name.startswith("mlx_lm.models"):
            for function, replacement in _REPLACEMENTS.items():
                if getattr(module, function.__name__, None) is function:
                    setattr(module, function.__name__, replacement)


def _recorded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls `function` and adds the call to all active recordings."""
    signature = inspect.signature(function)

    @wraps(function)
    def replacement(*args: Any, **options: Any) -> Any:
        result = function(*args, **options)
        if _recordings:
            call = _Call(function, signature.bind(*args, **options).arguments, result[1])
            for recorded in _recordings:
                recorded.calls.append(call)
        return result

    return replacement


_REPLACEMENTS = {function: _recorded(function) for function in _TIMED}
_convolve_plainly = nn.Conv1d.__call__


@wraps(_convolve_plainly)
def _convolve(self: nn.Conv1d, x: mx.array) -> mx.array:
    note_input(x)
    return _convolve_plainly(self, x)


@dataclass(frozen=True, slots=True)
class _Source:
    """The origin of a state array of a leaf: a call of a recording, or an input."""

    is_call: bool
    index: int  # index in Recording.calls or Recording.inputs


class Rewinding:
    """A method to rewind the recurrent states of one model.

    The order of the calls in a pass is the same in every pass of a model. So the source of each
    state array is found once, and holds for all recordings of passes of two or more tokens.
    """

    def __init__(self, sources: Sequence[Sequence[_Source]]) -> None:
        # For each auxiliary leaf of the model, the source of each of its arrays.
        self._sources = sources

    @classmethod
    def find(cls, recorded: Recording, caches: Sequence[object], pass_len: int) -> Self | None:
        """Return the rewinding of a model, or None if the source of a state array is unknown.

        Args:
            recorded: the recording of a pass of the model over one row.
            caches: the caches of the row after the pass.
            pass_len: number of tokens of the pass, at least 2.
        """
        arrays = state_arrays(caches)
        sources = None if arrays is None else _sources(recorded, arrays, pass_len)
        return None if sources is None else cls(sources)

    @classmethod
    def of_numbers(cls, numbers: Sequence[Sequence[Sequence[int]]]) -> Self:
        """Return the rewinding of a model from `as_numbers`. Raise ValueError if they are none."""
        return cls(
            [
                [_Source(is_call=bool(is_call), index=int(index)) for is_call, index in leaf]
                for leaf in numbers
            ]
        )

    def as_numbers(self) -> list[list[list[int]]]:
        """Return the sources as numbers, to record them."""
        return [[[int(source.is_call), source.index] for source in leaf] for leaf in self._sources]

    def states(
        self, recorded: Recording, after: Sequence[Sequence[mx.array]], kept: Sequence[int]
    ) -> list[list[mx.array]]:
        """Return the states of all rows as lazy arrays, each after the row's kept tokens.

        Args:
            recorded: the recording of the newest pass.
            after: for each auxiliary leaf, its arrays after the pass, of shape (B, ...).
            kept: for each row, the number of tokens to keep, from 1 to the length of the pass.
        """
        return [
            [
                _joined(
                    [self._rewound(source, recorded, array, rows, n) for rows, n in _runs(kept)]
                )
                for source, array in zip(sources, arrays, strict=True)
            ]
            for sources, arrays in zip(self._sources, after, strict=True)
        ]

    def _rewound(
        self, source: _Source, recorded: Recording, array: mx.array, rows: slice, num_tokens: int
    ) -> mx.array:
        if source.is_call:
            return recorded.calls[source.index].state_after(rows, num_tokens)
        window = array.shape[1]
        return owned(recorded.inputs[source.index][rows, num_tokens : num_tokens + window])


def _joined(parts: Sequence[mx.array]) -> mx.array:
    return parts[0] if len(parts) == 1 else mx.concatenate(list(parts))


def _runs(kept: Sequence[int]) -> Iterator[tuple[slice, int]]:
    """Yield each longest run of rows that keep equally many tokens, and this number of tokens."""
    start = 0
    for row in range(1, len(kept) + 1):
        if row == len(kept) or kept[row] != kept[start]:
            yield slice(start, row), kept[start]
            start = row


class WindowBefore:
    """The contents of a rotating window before a pass of several tokens."""

    def __init__(self, window: RotatingKVCache) -> None:
        self._window = window
        self._attributes = dict(vars(window))

    def rewind(self, pass_len: int, kept: int) -> None:
        """Keep the first `kept` of the pass_len tokens that the pass appended."""
        window: Any = self._window
        keys, values = window.keys[..., -pass_len:, :], window.values[..., -pass_len:, :]
        vars(window).update(self._attributes)
        window.update_and_fetch(keys[..., :kept, :], values[..., :kept, :])


def windows_of(caches: Sequence[object]) -> list[RotatingKVCache]:
    """Return the rotating windows of a row's caches."""
    return [leaf for leaf in leaves_of(caches) if isinstance(leaf, RotatingKVCache)]


def state_leaves(caches: Sequence[object]) -> list[AuxLeaf]:
    """Return the auxiliary leaves of a row's caches, except rotating windows."""
    others = [leaf for leaf in leaves_of(caches) if not isinstance(leaf, RotatingKVCache)]
    return list(Leaves.of(others).aux)


def state_arrays(caches: Sequence[object]) -> list[list[mx.array]] | None:
    """Return the arrays of each leaf of state_leaves, for leaves like mlx-lm's ArraysCache.

    Return None if a leaf keeps state outside the list `cache`, or overwrites its state in place.
    """
    found: list[list[mx.array]] = []
    for leaf in state_leaves(caches):
        attributes = cast("dict[str, object]", leaf.state)
        arrays = attributes.get("cache")
        others = {name: value for name, value in attributes.items() if name != "cache"}
        if leaf.writes_in_place or not isinstance(arrays, list) or any(arrays_in(others)):
            return None
        items = cast("list[object]", arrays)
        if not all(isinstance(item, mx.array) for item in items):
            return None
        found.append(cast("list[mx.array]", items))
    return found


def _sources(
    recorded: Recording, leaves: Sequence[Sequence[mx.array]], pass_len: int
) -> list[list[_Source]] | None:
    """Return the source of each state array of each leaf, or None if an array has no source."""
    inputs = dict(enumerate(recorded.inputs))
    found: list[list[_Source]] = []
    for arrays in leaves:
        found.append([])
        for array in arrays:
            source = _source(recorded, inputs, array, pass_len)
            if source is None:
                return None
            if not source.is_call:
                del inputs[source.index]
            found[-1].append(source)
    return found


def _source(
    recorded: Recording, inputs: dict[int, mx.array], array: mx.array, pass_len: int
) -> _Source | None:
    """Return the source of a state array.

    A recurrent state is the array object that a recurrent function returned. A window has the bits
    of the end of an input. Its shape alone is not enough, because a layer can have several
    convolutions of one shape.
    """
    for index, call in enumerate(recorded.calls):
        if call.state is array:
            return _Source(is_call=True, index=index)
    for index, x in inputs.items():
        fits = x.ndim == array.ndim == 3 and x[:, pass_len:].shape == array.shape
        if fits and mx.array_equal(x[:, pass_len:], array).item():
            return _Source(is_call=False, index=index)
    return None
