"""Run several conversations through the model together, in one forward pass.

A conversation in a batch is called a row. A pass feeds one token to every row, or several: the
newest token and the drafts of a verify pass. Rows may get different numbers of tokens. `Batch`
(runner/batch.py) creates a `RowGroup` from the model caches of all answers in progress, and calls
`forward` for every pass. When an answer starts or ends, it calls `hand_back` for every row, which
gives each conversation its caches back. Then it creates a new group. There are two classes of
groups: `MergedRows`, if the loader found that the model's caches can be merged
(FasterWays.can_merge), and `RowByRow`.

Attention K/V stay in each row's own buffers, and attention runs row by row (attention.py). So no
K/V are copied when the rows change, and no row is padded. Recurrent states have the same size in
all rows. So the states of all rows are merged into one array per layer, and the recurrent layers
run once for the whole batch.

The decoder feeds a token before it knows whether the reply ends with this token. So a group keeps
the state before the newest pass, and `hand_back` with undoing=True restores this state. A group
does not copy the arrays of this state: it keeps only references. If a layer overwrites its state in
place (`can_undo` is False), the old state is lost, and the decoder uses no look-ahead.

Use on the engine thread.
"""

# mlx-lm's cache classes have no type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, cast

import mlx.core as mx
from mlx_lm.models.cache import CacheList

from engine.cache.far import FarCaches, FarGroup
from engine.cache.layout import Leaves, is_kv
from engine.cache.positions import shift_of
from engine.cache.trees import evaluate_soon, map_arrays
from engine.cleanup import undo_on_error
from engine.models.adapter import ModelAdapter
from engine.models.merged_layers import MergedStates, RowAttention, RowPositions
from engine.models.mtp import HeadState
from engine.models.rewinding import (
    Recording,
    Rewinding,
    WindowBefore,
    recording,
    state_arrays,
    state_leaves,
    windows_of,
)


class RowGroup(Protocol):
    """The rows of a batch. Each pass feeds every row."""

    def forward(self, adapter: ModelAdapter, token_ids: Sequence[mx.array]) -> list[mx.array]:
        """Feed every row. After a pass of more than one token, call `keep` before anything else.

        If an error is raised, all rows are restored to the state before the call. Layers that
        overwrite their state in place cannot be restored: if `can_undo` is False for the model, the
        decoder therefore fails all rows.

        Args:
            adapter: the model.
            token_ids: one lazy array per row, of shape (L,). L may differ by row.

        Returns:
            One array of lazy logits per row, of shape (L, V).
        """
        ...

    def pass_len(self, row: int) -> int:
        """Return the number of tokens that the newest pass fed to a row, including padding."""
        ...

    def keep(self, rewinding: Rewinding, kept: Mapping[int, int]) -> None:
        """Keep the first tokens of each row that the newest pass fed, and remove the others.

        The device starts to compute the rewound states. The pass cannot be undone afterwards.

        Args:
            rewinding: rewinds the model's recurrent states.
            kept: for each row, the number of tokens of the pass to keep, at least 1. A row that is
                missing will not be used again.
        """
        ...

    def head_state(self, row: int) -> HeadState:
        """Return the state of the model's head for one row. Only for models with a head."""
        ...

    def hand_back(self, row: int, *, undoing: bool) -> None:
        """Hand a row's caches back to the row's conversation.

        With undoing=True, the caches have the state before the newest pass. Use this only after the
        first `forward`, and only if `can_undo` is True for the model. With undoing=False, the
        caches have the state after the newest pass.

        Do not call `forward` after the first row is handed back: the group still references the
        caches of this row, and `forward` would change them. The other rows stay as they are until
        they are handed back, which may happen later.
        """
        ...


class RowByRow:
    """A row group that runs one forward pass per row, on the row's own caches.

    It is used for a single row, and for models with caches that cannot be merged.
    """

    def __init__(self, rows: Sequence[list[object]]) -> None:
        self._rows = rows
        self._leaves = [Leaves.of(row) for row in rows]
        self._before = [_Before(leaves) for leaves in self._leaves]
        self._passes: list[_Pass] = []  # the newest pass of each row

    def forward(self, adapter: ModelAdapter, token_ids: Sequence[mx.array]) -> list[mx.array]:
        self._before = [_Before(leaves) for leaves in self._leaves]
        self._passes = []
        logits: list[mx.array] = []
        with undo_on_error(self._put_back):
            for row, caches in zip(token_ids, self._rows, strict=True):
                newest = _Pass(row.size, [caches])
                with newest.recording() as newest.recorded:
                    logits.append(adapter.run(row[None], caches)[0])
                self._passes.append(newest)
        return logits

    def pass_len(self, row: int) -> int:
        return self._passes[row].pass_len

    def keep(self, rewinding: Rewinding, kept: Mapping[int, int]) -> None:
        for row, num_tokens in kept.items():
            newest = self._passes[row]
            if num_tokens == newest.pass_len:
                continue
            after = state_arrays(self._rows[row]) or []
            rewound = rewinding.states(newest.recorded, after, [num_tokens])
            evaluate_soon(rewound)
            for leaf, states in zip(state_leaves(self._rows[row]), rewound, strict=True):
                leaf.state = {**cast("dict[str, object]", leaf.state), "cache": states}
            for leaf in self._leaves[row].kv:
                leaf.trim(newest.pass_len - num_tokens)
            newest.rewind_windows(0, num_tokens)
        self._passes = []

    def head_state(self, row: int) -> HeadState:
        kv, states = cast("Any", self._rows[row][-1]).caches
        return HeadState(kv, states.cache[0], shift_of(self._rows[row]))

    def hand_back(self, row: int, *, undoing: bool) -> None:
        if undoing:
            self._before[row].put_back()

    def _put_back(self) -> None:
        for before in self._before:
            before.put_back()


class _Pass:
    """A pass, with all that is needed to rewind it if it feeds more than one token to a row."""

    def __init__(self, pass_len: int, rows: Sequence[Sequence[object]]) -> None:
        self.pass_len = pass_len
        self.recorded = Recording()
        # Rotating windows of each row before the pass. A pass of one token writes into the arrays
        # of a window, so nothing may reference them.
        self._windows = [
            [WindowBefore(window) for window in windows_of(caches)] if pass_len > 1 else []
            for caches in rows
        ]

    def recording(self) -> AbstractContextManager[Recording]:
        """Return a context in which the pass is recorded, if it may have to be rewound."""
        return recording() if self.pass_len > 1 else nullcontext(self.recorded)

    def rewind_windows(self, row: int, kept: int) -> None:
        for window in self._windows[row]:
            window.rewind(self.pass_len, kept)


class _Before:
    """The state of one row before a pass: the K/V lengths and references to all other states."""

    def __init__(self, leaves: Leaves) -> None:
        self._kv = [(leaf, leaf.offset) for leaf in leaves.kv]
        self._aux = [(leaf, _same(leaf.state)) for leaf in leaves.aux]

    def put_back(self) -> None:
        for leaf, num_tokens in self._kv:
            leaf.trim(leaf.offset - num_tokens)
        for leaf, state in self._aux:
            leaf.state = _same(state)


def can_undo(caches: Sequence[object]) -> bool:
    """Return True if the newest token can be removed from the caches.

    This is possible only if no layer overwrites its recurrent state or window in place, and if no
    other stage takes part (far.py): its passes are not undone. The loader
    calls this function once per model and stores the result in LoadedModel.can_undo. If the result
    is False, the decoder uses no look-ahead.
    """
    leaves = Leaves.of(caches)
    return not leaves.far and not any(leaf.writes_in_place for leaf in leaves.aux)


class MergedRows:
    """A row group that runs one forward pass for all rows together."""

    def __init__(self, rows: Sequence[list[object]]) -> None:
        """Merge the caches of all rows.

        Raises:
            Exception: the caches of this model cannot be merged. The error can have any type.
                probe.merging_test catches the error, and the decoder then uses
                RowByRow. During decoding, the decoder feeds each row alone after such an error.
        """
        self._num_rows = len(rows)
        self._attentions: list[RowAttention] = []
        self._states: list[MergedStates] = []
        self._far: list[FarGroup] = []  # the same rows in the other stages, if there are any
        self._positions = RowPositions()
        self._rows = rows
        self._caches = [self._merged(layer) for layer in zip(*rows, strict=True)]
        self._pass = _Pass(0, [])  # the newest pass; its length includes padding

    @property
    def states(self) -> list[object]:
        """The merged recurrent states."""
        return [states.merged.cache for states in self._states]

    def forward(self, adapter: ModelAdapter, token_ids: Sequence[mx.array]) -> list[mx.array]:
        # The positions of the new tokens are equal in all layers. Compute them once per pass.
        self._positions.offset = self._find_offset()
        for states in self._states:
            states.before = list(states.merged.cache)
        for attention in self._attentions:
            attention.before = [leaf.offset for leaf in attention.leaves]
        self._pass = _Pass(max(row.size for row in token_ids), self._rows)
        # Short rows are padded at their end. The K/V and states of the padding are removed by
        # `keep`.
        padded = mx.stack([_padded(row, self._pass.pass_len) for row in token_ids])
        with undo_on_error(self._put_back), self._pass.recording() as self._pass.recorded:
            logits = adapter.run(padded, self._caches)  # shape (B, L, V)
        return [logits[row, : token_ids[row].size] for row in range(self._num_rows)]

    def pass_len(self, row: int) -> int:  # noqa: ARG002 — all rows are padded to one length
        return self._pass.pass_len

    def keep(self, rewinding: Rewinding, kept: Mapping[int, int]) -> None:
        pass_len = self._pass.pass_len
        num_kept = [kept.get(row, pass_len) for row in range(self._num_rows)]
        if min(num_kept) < pass_len:
            after: list[list[Any]] = [states.merged.cache for states in self._states]
            rewound = rewinding.states(self._pass.recorded, after, num_kept)
            evaluate_soon(rewound)
            for states, arrays in zip(self._states, rewound, strict=True):
                states.merged.cache = arrays
        for attention in self._attentions:
            for leaf, num_tokens in zip(attention.leaves, num_kept, strict=True):
                if is_kv(leaf):
                    leaf.trim(pass_len - num_tokens)
        for row, num_tokens in enumerate(num_kept):
            if num_tokens < pass_len:
                self._pass.rewind_windows(row, num_tokens)
        self._pass = _Pass(0, [])

    def head_state(self, row: int) -> HeadState:
        attention, states = cast("Any", self._caches[-1]).caches
        state = states.cache[0][row : row + 1]
        return HeadState(attention.leaves[row], state, shift_of(self._rows[row]))

    def hand_back(self, row: int, *, undoing: bool) -> None:
        if undoing:
            self._step_back(row)
        for states in self._states:
            states.split(row, undoing=undoing)
        for group in self._far:
            group.hand_back(row)

    def _put_back(self) -> None:
        for states in self._states:
            states.merged.cache = states.before
        for row in range(self._num_rows):
            self._step_back(row)

    def _step_back(self, row: int) -> None:
        for attention in self._attentions:
            leaf = attention.leaves[row]
            # Other leaves, such as a rotating window, cannot be cut and stay changed. For a model
            # with such a leaf, `can_undo` is False, so the decoder fails all rows.
            if is_kv(leaf):
                leaf.trim(leaf.offset - attention.before[row])

    def _find_offset(self) -> int | mx.array:
        """Return the position of each row's next token, in the form of RowPositions.offset."""
        if not self._attentions:
            return 0
        leaves = self._attentions[0].leaves
        offsets = [
            leaf.offset + shift_of(row) for leaf, row in zip(leaves, self._rows, strict=True)
        ]
        return offsets[0] if len(set(offsets)) == 1 else mx.array(offsets)

    def _merged(self, leaves: tuple[Any, ...]) -> object:
        """Merge the caches that all rows have for one layer into one cache object.

        The result also becomes an item of _attentions or _states, which `forward` and `hand_back`
        use. A CacheList of several caches adds several items.

        leaves: the cache of this layer, one per row.
        """
        first = leaves[0]
        if first is None:
            return None
        if isinstance(first, FarCaches):
            self._far.append(first.merged(leaves, [shift_of(row) for row in self._rows]))
            return self._far[-1]
        if isinstance(first, CacheList):
            parts = zip(*(layer.caches for layer in leaves), strict=True)
            return CacheList(*map(self._merged, parts))
        if hasattr(first, "update_and_fetch"):
            self._attentions.append(RowAttention(self._positions, leaves))
            return self._attentions[-1]
        self._states.append(MergedStates(leaves))
        return self._states[-1].merged


def _padded(token_ids: mx.array, num_tokens: int) -> mx.array:
    """Append zeros to token ids of shape (L,), so that the result has num_tokens items."""
    missing = num_tokens - token_ids.size
    return mx.pad(token_ids, (0, missing)) if missing else token_ids


def _same(state: object) -> object:
    """Return a copy of the containers in state. The arrays are the same objects, not copies."""
    return map_arrays(lambda array: array, state)
