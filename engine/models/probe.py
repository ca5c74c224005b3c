"""Test a model that was just loaded, by feeding it a few tokens.

The prefix cache removes tokens from the model's caches, copies the caches and restores them. Some
models give wrong results after these operations, and no list of such models exists. So `probe` does
each operation once with a few tokens, and compares the logits before and after. If the logits
differ, the model is refused.

`merging_test` tests whether several conversations can share a forward pass. `find_quantisation`
tests which caches can store quantised K/V. abilities.py and opening.py call these functions on the
engine thread.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from dataclasses import replace
from typing import TypeVar, cast

import mlx.core as mx

from engine.cache import kv
from engine.cache.layout import Layout, Leaves, measure_layout
from engine.cache.points import PointKind
from engine.cache.snapshot import capture, restore
from engine.cache.trees import arrays_in, evaluate, tree_bytes
from engine.errors import is_out_of_memory
from engine.models.adapter import ModelAdapter
from engine.models.compare import relative_difference, rounding_in
from engine.models.quantised_kv import KvQuantisation, group_sizes_of
from engine.models.rows import MergedRows, RowByRow

log = logging.getLogger(__name__)

# Token ids for the tests. The choice is arbitrary, but every vocabulary contains these ids.
_FIRST = tuple(range(8))
_NEXT = tuple(range(8, 12))
# Largest relative difference that counts as rounding. Two passes of equal length on equal state may
# differ only by rounding.
_TOLERANCE = 1e-4
# Errors that a model raises if it does not support an operation on its caches.
MISFITS = (TypeError, ValueError, AttributeError, LookupError, RuntimeError, AssertionError)


class StateError(Exception):
    """The error if a model gives different results after its cached state was restored."""


def probe(adapter: ModelAdapter) -> Layout:
    """Check that a model's caches can be cut, copied and restored, and return their layout.

    Raises:
        StateError: a check failed.
    """
    caches = adapter.new_caches()
    _feed(adapter, caches, _FIRST)
    try:
        _require_causal(adapter, caches)
        return _put_back(adapter, caches)
    except MISFITS as error:
        if is_out_of_memory(error):
            raise
        raise StateError(repr(error)) from error


def _require_causal(adapter: ModelAdapter, caches: list[object]) -> None:
    """Raise StateError if the K/V of a token depend on later tokens of the same pass.

    Such K/V could not be reused in a prompt that continues with other tokens.
    """
    half = len(_FIRST) // 2
    others = adapter.new_caches()
    _feed(adapter, others, (*_FIRST[:half], *reversed(_FIRST[half:])))
    ours, theirs = (kv.read_range(Leaves.of(c), 0, half) for c in (caches, others))
    for array, other in zip(arrays_in(ours), arrays_in(theirs), strict=True):
        _require_same(array, other, "K/V of the same tokens")


def _put_back(adapter: ModelAdapter, caches: list[object]) -> Layout:
    """Check that a model continues in the same way from its own state and from restored state.

    The caches contain the tokens _FIRST. Feed _NEXT, cut the caches back to _FIRST, copy their
    contents into new caches, and feed _NEXT to the new caches.

    Returns:
        The layout of the caches.

    Raises:
        StateError: the logits differ.
    """
    num_tokens, leaves = len(_FIRST), Leaves.of(caches)
    layout = measure_layout(caches, num_tokens, tree_bytes)
    snapshot = capture(leaves, num_tokens, PointKind.TAIL)
    evaluate(snapshot.states)
    at_once = _feed(adapter, caches, _NEXT)

    kv.cut(leaves, num_tokens)
    restore(leaves, snapshot)
    copied = kv.copy_range(leaves, 0, num_tokens)
    others = adapter.new_caches()
    leaves = Leaves.of(others)
    kv.append_slices(leaves, [copied.range(0, num_tokens)], num_tokens, num_tokens)
    restore(leaves, snapshot)
    _require_same(at_once, _feed(adapter, others, _NEXT), "logits after the same state")
    return layout


def _require_same(wanted: mx.array, ours: mx.array, what: str) -> None:
    tolerance = rounding_in(wanted, _TOLERANCE)
    if wanted.size and (difference := relative_difference(ours, wanted)) > tolerance:
        raise StateError(f"{what} differ by {difference:.1e} of their deviation")


# A test in steps: a step is one or a few forward passes. The value of the generator is the result.
T = TypeVar("T")
Steps = Generator[None, None, T]


def run_steps(steps: Steps[T]) -> T:
    """Run a test without a pause. Return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast("T", end.value)


def merging_test(adapter: ModelAdapter) -> Steps[bool]:
    """Test whether a forward pass for several rows gives the same logits as separate passes."""
    try:
        together = _rows(adapter)
        yield
        apart = _rows(adapter)
        yield
        group = MergedRows(together)
        for token_id in _NEXT[:2]:
            token_ids = [mx.array([token_id])] * len(together)
            ours = group.forward(adapter, token_ids)
            theirs = RowByRow(apart).forward(adapter, token_ids)
            for row, logits in enumerate(theirs):
                _require_same(logits, ours[row], "logits of rows together")
            yield
        for row, caches in enumerate(together):
            group.hand_back(row, undoing=False)
            wanted = _feed(adapter, apart[row], _NEXT[:1])
            _require_same(wanted, _feed(adapter, caches, _NEXT[:1]), "logits after a batch")
            yield
    except (*MISFITS, StateError) as error:
        if is_out_of_memory(error):
            raise
        # A log record may be kept, and the error's traceback has the caches. So log text only.
        log.info(
            "rows take separate forward passes, because they cannot be merged: %s", repr(error)
        )
        return False
    return True


def _rows(adapter: ModelAdapter) -> list[list[object]]:
    """Return caches for two conversations of different lengths."""
    rows: list[list[object]] = []
    for num_tokens in (len(_FIRST), 5):
        rows.append(adapter.new_caches())
        _feed(adapter, rows[-1], _FIRST[:num_tokens])
    return rows


def find_quantisation(adapter: ModelAdapter, bits: int) -> KvQuantisation:
    """Return settings for quantising the K/V caches of a model.

    If a cache cannot be quantised, its group size is 0.
    """
    caches = adapter.new_caches()
    _feed(adapter, caches, _FIRST)
    wanted = KvQuantisation(bits, tuple(group_sizes_of(caches)))
    if not _runs(adapter.quantising(wanted)):
        sizes = enumerate(wanted.group_sizes)
        usable = tuple(
            n if n and _runs(adapter.quantising(wanted.only(i))) else 0 for i, n in sizes
        )
        wanted = replace(wanted, group_sizes=usable)
    log.info("K/V are quantised to %d bits, group sizes per cache: %s", bits, wanted.group_sizes)
    return wanted


def _runs(adapter: ModelAdapter) -> bool:
    caches = adapter.new_caches()
    try:
        _feed(adapter, caches, _FIRST)
        _feed(adapter, caches, _NEXT[:1])
    except MISFITS as error:
        if is_out_of_memory(error):
            raise
        log.info("the model does not run with these quantised K/V: %s", repr(error))
        return False
    return True


def _feed(adapter: ModelAdapter, caches: list[object], token_ids: tuple[int, ...]) -> mx.array:
    logits = adapter.forward(token_ids, caches)
    evaluate(logits)
    return logits
