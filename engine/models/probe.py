"""Probe a model by running it a little: what its caches hold, and that it resumes from them.

No model is known by name. One whose caches don't survive what the prefix cache does with them is
refused at loading, so that no answer is ever wrong.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import mlx.core as mx
from mlx import nn

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

_FIRST = tuple(range(8))
_NEXT = tuple(range(8, 12))
# Passes of the same length on the same state give the same but for rounding, if for that.
_TOLERANCE = 1e-4
# What code that was not made for what it is given raises.
_MISFITS = (TypeError, ValueError, AttributeError, LookupError, RuntimeError, AssertionError)


class StateError(Exception):
    """A model does not resume from a snapshot that is put back into its caches."""


def probe(adapter: ModelAdapter) -> Layout:
    """The layout of a model's caches, once it is sure that they can be cut, copied and put back.

    Raises:
        StateError: they can't.
    """
    caches = adapter.new_caches()
    _feed(adapter, caches, _FIRST)
    try:
        _require_causal(adapter, caches)
        return _put_back(adapter, caches)
    except _MISFITS as error:
        if is_out_of_memory(error):
            raise
        raise StateError(repr(error)) from error


def _require_causal(adapter: ModelAdapter, caches: list[object]) -> None:
    """K/V of tokens must not depend on later ones of the same pass: others may follow another time."""
    half = len(_FIRST) // 2
    others = adapter.new_caches()
    _feed(adapter, others, (*_FIRST[:half], *reversed(_FIRST[half:])))
    ours, theirs = (kv.read_range(Leaves.of(c).kv, 0, half) for c in (caches, others))
    for array, other in zip(arrays_in(ours), arrays_in(theirs), strict=True):
        _require_same(array, other, "K/V of the same tokens")


def _put_back(adapter: ModelAdapter, caches: list[object]) -> Layout:
    """Continue after a resume point, cut back to it, copy it, and continue after it in other caches."""
    num_tokens, leaves = len(_FIRST), Leaves.of(caches)
    layout = measure_layout(caches, num_tokens, tree_bytes)
    states = capture(leaves.aux, num_tokens, PointKind.TAIL).states
    evaluate(states)
    at_once = _feed(adapter, caches, _NEXT)

    kv.cut(leaves.kv, num_tokens)
    restore(leaves.aux, states)
    copied = kv.copy_range(leaves.kv, 0, num_tokens)
    others = adapter.new_caches()
    leaves = Leaves.of(others)
    kv.append_slices(leaves.kv, [copied.leaves], num_tokens, num_tokens)
    restore(leaves.aux, states)
    _require_same(at_once, _feed(adapter, others, _NEXT), "logits after the same state")
    return layout


def _require_same(wanted: mx.array, ours: mx.array, what: str) -> None:
    tolerance = rounding_in(wanted, _TOLERANCE)
    if wanted.size and (difference := relative_difference(ours, wanted)) > tolerance:
        raise StateError(f"{what} differ by {difference:.1e} of their deviation")


def can_merge(adapter: ModelAdapter) -> bool:
    """Whether rows of a model can go through it in one pass and give what each gives alone."""
    together, apart = (_rows(adapter), _rows(adapter))
    try:
        group = MergedRows(together)
        for token_id in _NEXT[:2]:
            token_ids = [mx.array(token_id)] * len(together)
            ours = group.forward(adapter, token_ids)
            theirs = RowByRow(apart).forward(adapter, token_ids)
            for row, logits in enumerate(theirs):
                _require_same(logits, ours[row], "logits of rows together")
        for row, caches in enumerate(together):
            group.hand_back(row, undoing=False)
            wanted = _feed(adapter, apart[row], _NEXT[:1])
            _require_same(wanted, _feed(adapter, caches, _NEXT[:1]), "logits after a batch")
    except (*_MISFITS, StateError) as error:
        if is_out_of_memory(error):
            raise
        log.info("rows go one by one: %r", error)
        return False
    return True


def _rows(adapter: ModelAdapter) -> list[list[object]]:
    """Caches of conversations of different lengths."""
    rows: list[list[object]] = []
    for num_tokens in (len(_FIRST), 5):
        rows.append(adapter.new_caches())
        _feed(adapter, rows[-1], _FIRST[:num_tokens])
    return rows


def find_quantisation(model: nn.Module, bits: int) -> KvQuantisation:
    """Which of a model's K/V caches its attention can use quantised: all that it can."""
    adapter = ModelAdapter(model)
    caches = adapter.new_caches()
    _feed(adapter, caches, _FIRST)
    wanted = KvQuantisation(bits, tuple(group_sizes_of(caches)))
    if not _runs(model, wanted):
        sizes = enumerate(wanted.group_sizes)
        usable = tuple(n if n and _runs(model, wanted.only(i)) else 0 for i, n in sizes)
        wanted = replace(wanted, group_sizes=usable)
    log.info("K/V in %d bits, in groups of %s", bits, wanted.group_sizes)
    return wanted


def _runs(model: nn.Module, quantisation: KvQuantisation) -> bool:
    adapter = ModelAdapter(model, quantisation)
    caches = adapter.new_caches()
    try:
        _feed(adapter, caches, _FIRST)
        _feed(adapter, caches, _NEXT[:1])
    except _MISFITS as error:
        if is_out_of_memory(error):
            raise
        log.info("not with these quantised K/V: %r", error)
        return False
    return True


def _feed(adapter: ModelAdapter, caches: list[object], token_ids: tuple[int, ...]) -> mx.array:
    logits = adapter.forward(token_ids, caches)
    evaluate(logits)
    return logits
