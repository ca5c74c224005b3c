"""Auxiliary state at one exact token position: taken out of live caches and put back.

Recurrent layers replace their arrays at every step, so a reference is an isolated copy that costs
nothing. Layers that write in place (a rotating window), and any that we don't know, are copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import mlx.core as mx

from engine.cache.layout import AuxLeaf
from engine.cache.trees import map_arrays, owned, tree_bytes
from engine.chat.prompt import PointKind


@dataclass(slots=True, eq=False)
class Snapshot:
    """The auxiliary state of all layers after exactly num_tokens, and perhaps the logits there.

    logits (V,) are the raw ones before any filter: with them a reply can begin without a forward
    pass.
    """

    num_tokens: int
    kind: PointKind
    states: tuple[object, ...]
    logits: mx.array | None = None
    nbytes: int = field(init=False)

    def __post_init__(self) -> None:
        self.nbytes = tree_bytes((self.states, self.logits))


def capture(
    leaves: Sequence[AuxLeaf], num_tokens: int, kind: PointKind, logits: mx.array | None = None
) -> Snapshot:
    """Take the state out; lazy until the caller evaluates it together with the live arrays."""
    states = tuple(_detached(leaf) for leaf in leaves)
    return Snapshot(num_tokens, kind, states, None if logits is None else owned(logits))


def restore(leaves: Sequence[AuxLeaf], states: Sequence[object]) -> None:
    """Put a captured state back; the snapshot stays usable."""
    for leaf, state in zip(leaves, states, strict=True):
        leaf.state = map_arrays(_copy if leaf.writes_in_place else _same, state)


def _detached(leaf: AuxLeaf) -> object:
    return map_arrays(_copy if leaf.writes_in_place else owned, leaf.state)


# map_arrays builds new containers, so that a list of arrays is never shared with a live cache.


def _same(x: mx.array) -> mx.array:
    return x


def _copy(x: mx.array) -> mx.array:
    return mx.array(x)
