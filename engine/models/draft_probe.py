"""Test whether a loaded model can verify drafts in one pass and be rewound.

Speculative decoding feeds several tokens of a reply in one pass and removes those that the model
does not confirm (rewinding.py). `rewinding_test` tests this with one conversation, and
`merged_drafts_test` with several conversations in one pass. abilities.py runs both in idle time on
the engine thread, one step after the other. A model that fails a test answers without speculation.
The tests copy caches, and those of other stages cannot be copied, so neither test is made on a
model in stages.

Some models of mlx-lm let the tokens of a longer pass see more of a sliding window than a token of
its own pass. Drafts would then change the reply. `_windows_are_fixed` finds these models.
"""

# mlx-lm's cache classes have no type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, TypeVar, cast

import mlx.core as mx

from engine.cache.layout import is_kv, leaves_of
from engine.cache.trees import arrays_in, evaluate, map_arrays
from engine.errors import is_out_of_memory
from engine.models.adapter import ModelAdapter
from engine.models.compare import relative_difference, rounding_in
from engine.models.probe import MISFITS, Steps
from engine.models.rewinding import Rewinding, recording, state_arrays, windows_of
from engine.models.rows import MergedRows, RowByRow, RowGroup

log = logging.getLogger(__name__)

T = TypeVar("T")

# Token ids for the tests. The choice is arbitrary, but every vocabulary contains these ids.
_FIRST = tuple(range(8))
_PASS = tuple(range(8, 14))
_NEXT = 14
_KEPT = (1, 4)  # numbers of tokens of _PASS that the tests keep
# Largest relative difference between the logits of passes of different lengths.
_TOLERANCE = 1e-3


def rewinding_test(adapter: ModelAdapter) -> Steps[Rewinding | None]:
    """Find a method to rewind the model's recurrent states. None if this is not possible.

    The test feeds some tokens in one pass and removes the last of them. The next token must then
    get the logits that it gets without the removed tokens, up to rounding. If other tokens are
    removed, the states and logits must have the same bits.
    """
    return (yield from _attempted("no speculation", _tested_rewinding(adapter)))


def _tested_rewinding(adapter: ModelAdapter) -> Steps[Rewinding | None]:
    if not _windows_are_fixed(adapter):
        log.info("no speculation: longer passes see more of a sliding window")
        return None
    fed = _fed(adapter)
    caches = deepcopy(fed)
    with recording() as recorded:
        evaluate(adapter.run(mx.array([_PASS]), caches))
    yield
    rewinding = Rewinding.find(recorded, caches, len(_PASS))
    if rewinding is None:
        log.info("no speculation: the source of a recurrent state is unknown")
        return None
    for num_kept in _KEPT:
        kept = _PASS[:num_kept]
        others = (*kept, *_FIRST[: len(_PASS) - num_kept])
        ours, theirs = (
            _after_removal(adapter, deepcopy(fed), rewinding, token_ids, num_kept)
            for token_ids in (_PASS, others)
        )
        same_bits = all(mx.array_equal(a, b).item() for a, b in zip(ours, theirs, strict=True))
        yield
        if not (same_bits and _agree(ours[0], _one_by_one(adapter, deepcopy(fed), (*kept, _NEXT)))):
            log.info("no speculation: rewound states give other logits")
            return None
        yield
    return rewinding


def merged_drafts_test(adapter: ModelAdapter, rewinding: Rewinding) -> Steps[bool]:
    """Test whether one pass can feed different numbers of tokens to several conversations.

    The logits must be those of separate passes, up to rounding, also after tokens are removed.
    """
    agree = _rows_agree(adapter, rewinding)
    return (yield from _attempted("no speculation beside others", agree)) is True


def _rows_agree(adapter: ModelAdapter, rewinding: Rewinding) -> Steps[bool]:
    fed = _fed(adapter)
    together, apart = ([deepcopy(fed), deepcopy(fed)] for _ in range(2))
    passes = [mx.array(_PASS), mx.array(_PASS[:2])]
    kept = {0: 3, 1: 1}
    yield
    ours = _verified(adapter, rewinding, MergedRows(together), passes, kept)
    evaluate(ours)
    yield
    theirs = _verified(adapter, rewinding, RowByRow(apart), passes, kept)
    return all(_agree(a, b) for a, b in zip(ours, theirs, strict=True))


def _attempted(consequence: str, test: Steps[T]) -> Steps[T | None]:
    """Run a test. The result is None if the model does not support an operation of the test."""
    try:
        return (yield from test)
    except MISFITS as error:
        if is_out_of_memory(error):
            raise
        log.info("%s: %s", consequence, repr(error))
        return None


def _windows_are_fixed(adapter: ModelAdapter) -> bool:
    """Return True if tokens of all pass lengths see equally many keys in full sliding windows."""
    one, several = (_visible_keys(adapter, pass_len) for pass_len in (1, len(_PASS)))
    return one.keys() == several.keys() and all(
        set(several[layer]) == set(counts) for layer, counts in one.items()
    )


def _visible_keys(adapter: ModelAdapter, pass_len: int) -> dict[int, list[int]]:
    """Return the number of keys that each token of a pass sees in full windows.

    The windows are filled with zeros, and only masks are computed: the pass itself stays lazy.

    Returns:
        For each sliding window that the model makes a mask of, by its number: one number per token.
    """
    caches = adapter.new_caches()
    adapter.run(mx.array([_FIRST]), caches)
    windows: list[Any] = [*windows_of(caches)]
    num_tokens = len(_FIRST) + max((window.max_size for window in windows), default=0)
    masks: dict[int, object] = {}
    for leaf in leaves_of(caches):
        if is_kv(leaf):
            _fill(leaf, num_tokens, num_tokens + pass_len)
    for number, window in enumerate(windows):
        _fill(window, num_tokens, window.max_size)
        window._idx = window.max_size  # noqa: SLF001 — the next token replaces the oldest one
        make_mask = window.make_mask

        def noted(
            *args: Any,
            _make: Callable[..., object] = make_mask,
            _number: int = number,
            **options: Any,
        ) -> object:
            masks[_number] = _make(*args, **options)
            return masks[_number]

        window.make_mask = noted
    adapter.run(mx.array([_PASS[:pass_len]]), caches)
    return {number: _visible(mask, windows[number], pass_len) for number, mask in masks.items()}


def _fill(leaf: Any, num_tokens: int, capacity: int) -> None:
    """Fill a cache with lazy zeros, as if it had seen num_tokens tokens."""

    def zeros(x: mx.array) -> mx.array:
        return mx.zeros((*x.shape[:2], capacity, x.shape[3]), x.dtype)

    leaf.keys, leaf.values = map_arrays(zeros, leaf.keys), map_arrays(zeros, leaf.values)
    leaf.offset = num_tokens


def _visible(mask: object, window: Any, pass_len: int) -> list[int]:
    """Return the numbers of keys that a mask shows to each token of a pass."""
    if isinstance(mask, mx.array):
        rows = mask.reshape(-1, mask.shape[-1])[-pass_len:]
        return cast("list[int]", mx.sum(rows, axis=-1).tolist())
    num_keys = window.keys.shape[2]
    return [num_keys - pass_len + 1 + index for index in range(pass_len)]


def _fed(adapter: ModelAdapter) -> list[object]:
    caches = adapter.new_caches()
    evaluate(adapter.forward(_FIRST, caches))
    return caches


def _one_by_one(adapter: ModelAdapter, caches: list[object], token_ids: Sequence[int]) -> mx.array:
    """Feed one token per pass. Return the logits (V,) of the last token."""
    logits = [adapter.forward([token_id], caches) for token_id in token_ids]
    evaluate(logits)
    return logits[-1]


def _after_removal(
    adapter: ModelAdapter,
    caches: list[object],
    rewinding: Rewinding,
    token_ids: tuple[int, ...],
    num_kept: int,
) -> list[mx.array]:
    """Feed a pass, remove all but num_kept tokens, and feed _NEXT.

    Returns:
        The logits (V,) of _NEXT, and the recurrent states before it.
    """
    group = RowByRow([caches])
    evaluate(group.forward(adapter, [mx.array(token_ids)]))
    group.keep(rewinding, {0: num_kept})
    states = list(arrays_in(state_arrays(caches)))
    return [adapter.forward([_NEXT], caches), *states]


def _verified(
    adapter: ModelAdapter,
    rewinding: Rewinding,
    group: RowGroup,
    passes: Sequence[mx.array],
    kept: dict[int, int],
) -> list[mx.array]:
    """Feed a pass of several tokens and then one of one token. Return the logits of both."""
    logits = group.forward(adapter, passes)
    group.keep(rewinding, kept)
    return [*logits, *group.forward(adapter, [mx.array([_NEXT])] * len(passes))]


def _agree(ours: mx.array, wanted: mx.array) -> bool:
    return relative_difference(ours, wanted) <= rounding_in(wanted, _TOLERANCE)
