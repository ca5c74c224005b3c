"""Attention K/V arrays: cut, read, copy and fill the buffers of K/V leaves. Engine thread only.

Buffers are written in place. A second handle on one makes the next write copy all of it, so a
slice is copied (and evaluated) before anything is written again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import mlx.core as mx

from engine.cache.layout import KvLeaf
from engine.cache.trees import arrays_in, evaluate, map_arrays, owned, tree_bytes

# Buffers grow in steps of this many tokens, mlx-lm's own step.
STEP = 256
# From here on a layer's buffers grow one layer at a time, so that only one is there twice.
_LARGE_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, eq=False)
class KvArrays:
    """The K/V of a range of tokens in arrays of its own, one (keys, values) a leaf.

    Each tensor has shape (1, H, num_tokens, D); quantised K/V are tuples of such tensors.
    """

    num_tokens: int
    leaves: tuple[object, ...]
    nbytes: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nbytes", tree_bytes(self.leaves))

    def split(self, at: int) -> tuple[KvArrays, KvArrays]:
        """The first `at` tokens and the rest, both in arrays of their own."""
        parts = (
            KvArrays(at, tuple(_slice(leaf, 0, at) for leaf in self.leaves)),
            KvArrays(
                self.num_tokens - at,
                tuple(_slice(leaf, at, self.num_tokens) for leaf in self.leaves),
            ),
        )
        evaluate([part.leaves for part in parts])
        return parts

    def range(self, start: int, end: int) -> tuple[object, ...]:
        """Lazy slices [start, end), one tree a leaf."""
        return tuple(map_arrays(lambda x: x[..., start:end, :], leaf) for leaf in self.leaves)


def read_range(leaves: Sequence[KvLeaf], start: int, end: int) -> tuple[object, ...]:
    """Lazy slices [start, end) of live buffers; use them before the buffers are written again."""
    return tuple(
        map_arrays(lambda x: x[..., start:end, :], (leaf.keys, leaf.values)) for leaf in leaves
    )


def copy_range(leaves: Sequence[KvLeaf], start: int, end: int) -> KvArrays:
    """The K/V of [start, end) copied out of live buffers."""
    copied = tuple(_slice((leaf.keys, leaf.values), start, end) for leaf in leaves)
    evaluate(copied)
    return KvArrays(end - start, copied)


def cut(leaves: Sequence[KvLeaf], num_tokens: int) -> None:
    """Forget everything after num_tokens; the buffers stay."""
    for leaf in leaves:
        assert leaf.offset >= num_tokens
        leaf.trim(leaf.offset - num_tokens)
        assert leaf.offset == num_tokens


def capacity(leaf: KvLeaf) -> int:
    """Tokens that a leaf's buffer can hold without growing."""
    return next((array.shape[-2] for array in arrays_in(leaf.keys)), 0)


def roomy(num_tokens: int) -> int:
    """The capacity of a buffer that is made for num_tokens: an eighth to spare."""
    return _round_up(num_tokens + num_tokens // 8)


def reserve(leaves: Sequence[KvLeaf], num_tokens: int) -> int:
    """Make room for num_tokens in one go, with an eighth to spare.

    Returns:
        Bytes copied, 0 where there was room or nothing is held yet.
    """
    copied = 0
    for leaf in leaves:
        if leaf.keys is None or capacity(leaf) >= num_tokens:
            continue
        copied += tree_bytes((leaf.keys, leaf.values)) * leaf.offset // capacity(leaf)
        _grow(leaf, (), leaf.offset, roomy(num_tokens))
    if copied:
        evaluate([(leaf.keys, leaf.values) for leaf in leaves])
    return copied


def growth(leaves: Sequence[KvLeaf], num_tokens: int) -> int:
    """Bytes that `reserve` would add."""
    needed = 0
    for leaf in leaves:
        if leaf.keys is not None and (held := capacity(leaf)) < num_tokens:
            needed += tree_bytes((leaf.keys, leaf.values)) * (roomy(num_tokens) - held) // held
    return needed


def append_slices(
    leaves: Sequence[KvLeaf], parts: Sequence[tuple[object, ...]], num_tokens: int, room: int
) -> int:
    """Write slices (from `range` or `read_range`) behind what the leaves hold: num_tokens in all.

    In place where they fit, else by one concatenation a buffer, with room for `room` tokens.

    Returns:
        Bytes written.
    """
    for index, leaf in enumerate(leaves):
        added = [part[index] for part in parts]
        if capacity(leaf) >= num_tokens:
            _write((leaf.keys, leaf.values), leaf.offset, added)
        else:
            _grow(leaf, added, num_tokens, _round_up(max(room, num_tokens)))
        leaf.offset = num_tokens
    evaluate([(leaf.keys, leaf.values) for leaf in leaves])
    return sum(tree_bytes(part) for part in parts)


def _grow(leaf: KvLeaf, added: Sequence[object], num_tokens: int, room: int) -> None:
    held = () if leaf.keys is None else read_range([leaf], 0, leaf.offset)
    leaf.keys, leaf.values = _join([*held, *added], num_tokens, room)
    if tree_bytes((leaf.keys, leaf.values)) >= _LARGE_BYTES:
        evaluate(leaf.keys, leaf.values)


def _write(buffers: object, start: int, added: Sequence[object]) -> None:
    for tree in added:
        end = start
        for target, source in zip(arrays_in(buffers), arrays_in(tree), strict=True):
            end = start + source.shape[-2]
            target[..., start:end, :] = source
        start = end


def _slice(tree: object, start: int, end: int) -> object:
    return map_arrays(lambda x: owned(x[..., start:end, :]), tree)


def _round_up(num_tokens: int) -> int:
    return -(-num_tokens // STEP) * STEP


def _join(trees: Sequence[object], num_tokens: int, room: int) -> tuple[object, object]:
    """Trees of one shape, num_tokens in all, and zeros up to `room`; each byte is copied once."""
    rows = zip(*(arrays_in(tree) for tree in trees), strict=True)

    def join(row: Sequence[mx.array]) -> mx.array:
        *lead, _, dim = row[0].shape
        padding = mx.zeros((*lead, room - num_tokens, dim), row[0].dtype)
        return mx.concatenate([*row, padding], axis=-2)

    joined = (join(row) for row in rows)
    return cast("tuple[object, object]", map_arrays(lambda _: next(joined), trees[0]))
