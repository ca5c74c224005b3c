"""Snapshots: the auxiliary state of all layers after exactly n tokens, captured and restored.

Auxiliary state is all state that cannot be cut at an earlier token: recurrent states, convolution
tails, rotating windows. A recurrent layer replaces its arrays at every step, so a snapshot can
reference the old arrays without a copy. Layers that write in place, such as rotating windows, and
layers of unknown types are copied.

If the model is divided into stages, the other stages capture and restore their state too (far.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import mlx.core as mx

from engine.cache.far import FarState
from engine.cache.layout import AuxLeaf, Leaves
from engine.cache.points import PointKind
from engine.cache.trees import map_arrays, owned, tree_bytes


@dataclass(slots=True, eq=False)
class Snapshot:
    """The auxiliary state of all layers after exactly num_tokens, optionally with the logits."""

    num_tokens: int
    kind: PointKind
    states: tuple[object, ...]  # state of each auxiliary leaf, in the order of Leaves.aux
    # Logits (V,) for the next token, before any filter. They let a reply begin without a forward
    # pass.
    logits: mx.array | None = None
    far: tuple[FarState, ...] = ()  # the state of the other stages
    _own_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        self._own_bytes = tree_bytes((self.states, self.logits))

    @property
    def nbytes(self) -> int:
        """Number of bytes in all stages."""
        if not self.far:  # on one machine. Each ledger counts thousands of snapshots.
            return self._own_bytes
        return self._own_bytes + sum(sum(state.stage_bytes) for state in self.far)

    @property
    def has_state(self) -> bool:
        """True if the snapshot has auxiliary state, False if it has logits only."""
        return bool(self.states or self.far)


def capture(
    leaves: Leaves, num_tokens: int, kind: PointKind, logits: mx.array | None = None
) -> Snapshot:
    """Return a snapshot of the auxiliary state of the leaves.

    The arrays of the snapshot are lazy. The caller evaluates them together with the live caches.
    """
    states = tuple(_detached(leaf) for leaf in leaves.aux)
    kept_logits = None if logits is None else owned(logits)
    far = tuple(caches.capture() for caches in leaves.far if caches.has_state)
    return Snapshot(num_tokens, kind, states, kept_logits, far)


def restore(leaves: Leaves, snapshot: Snapshot) -> None:
    """Restore captured state into the leaves. The snapshot stays valid for later restores."""
    for leaf, state in zip(leaves.aux, snapshot.states, strict=True):
        leaf.state = map_arrays(_copy if leaf.writes_in_place else _same, state)
    for caches, state in zip(leaves.far, snapshot.far, strict=False):
        caches.restore(state)


def _detached(leaf: AuxLeaf) -> object:
    return map_arrays(_copy if leaf.writes_in_place else owned, leaf.state)


# _same does not copy the arrays, but map_arrays builds new lists and dicts around them. A live
# cache assigns to the items of its list, so it must not share a list with a snapshot.


def _same(x: mx.array) -> mx.array:
    return x


def _copy(x: mx.array) -> mx.array:
    return mx.array(x)
