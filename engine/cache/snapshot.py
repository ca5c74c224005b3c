"""Snapshots: the auxiliary state of all layers after exactly n tokens, captured and restored.

Auxiliary state is all state that cannot be cut at an earlier token: recurrent states, convolution
tails, rotating windows. A recurrent layer replaces its arrays at every step, so a snapshot can
reference the old arrays without a copy. Layers that write in place, such as rotating windows, and
layers of unknown types are copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import mlx.core as mx

from engine.cache.layout import AuxLeaf
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
    nbytes: int = field(init=False)

    def __post_init__(self) -> None:
        self.nbytes = tree_bytes((self.states, self.logits))


def capture(
    leaves: Sequence[AuxLeaf], num_tokens: int, kind: PointKind, logits: mx.array | None = None
) -> Snapshot:
    """Return a snapshot of the auxiliary state of the leaves.

    The arrays of the snapshot are lazy. The caller evaluates them together with the live caches.
    """
    states = tuple(_detached(leaf) for leaf in leaves)
    return Snapshot(num_tokens, kind, states, None if logits is None else owned(logits))


def restore(leaves: Sequence[AuxLeaf], states: Sequence[object]) -> None:
    """Restore captured states into the leaves. The states stay valid for later restores."""
    for leaf, state in zip(leaves, states, strict=True):
        leaf.state = map_arrays(_copy if leaf.writes_in_place else _same, state)


def _detached(leaf: AuxLeaf) -> object:
    return map_arrays(_copy if leaf.writes_in_place else owned, leaf.state)


# _same does not copy the arrays, but map_arrays builds new lists and dicts around them. A live
# cache assigns to the items of its list, so it must not share a list with a snapshot.


def _same(x: mx.array) -> mx.array:
    return x


def _copy(x: mx.array) -> mx.array:
    return mx.array(x)
