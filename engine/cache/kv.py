"""Attention K/V buffers of live caches: cut, grow, copy and fill. Engine thread only.

mlx-lm writes K/V buffers in place. While a second reference to a buffer exists, the next write
copies the whole buffer. Therefore each slice is copied and evaluated before its buffer is written
again. A leaf is the cache object of one attention layer (layout.py).

If the model is divided into stages, each function also does its work in the other stages (far.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import mlx.core as mx

from engine.cache.far import FarPart, FarSpan
from engine.cache.layout import KvLeaf, Leaves
from engine.cache.trees import arrays_in, evaluate, map_arrays, owned, tree_bytes

# Buffers grow in steps of this many tokens, as in mlx-lm.
STEP = 256
# Layers with buffers of this size or larger grow one at a time, so that at most one layer's buffers
# are in memory twice.
_LARGE_BYTES = 16 << 20


class KvPart(NamedTuple):
    """Lazy slices of the K/V of a range of tokens."""

    leaves: tuple[object, ...]  # one (keys, values) tuple per leaf
    far: tuple[FarPart, ...] = ()  # the same tokens in the other stages


@dataclass(frozen=True, slots=True, eq=False)
class KvArrays:
    """The K/V of a range of tokens in separate arrays: one (keys, values) tuple per leaf.

    Each array has the shape (1, H, num_tokens, D). Quantised keys or values are tuples of arrays.
    """

    num_tokens: int
    leaves: tuple[object, ...]
    far: tuple[FarSpan, ...] = ()  # the K/V of the same tokens in the other stages
    nbytes: int = field(init=False)  # bytes in all stages

    def __post_init__(self) -> None:
        far_bytes = sum(span.nbytes for span in self.far)
        object.__setattr__(self, "nbytes", tree_bytes(self.leaves) + far_bytes)

    def split(self, at: int) -> tuple[KvArrays, KvArrays]:
        """Return the first `at` tokens and the remaining tokens, each in new arrays."""
        far = [span.split(at) for span in self.far]
        parts = (
            KvArrays(
                at,
                tuple(_slice(leaf, 0, at) for leaf in self.leaves),
                tuple(head for head, _ in far),
            ),
            KvArrays(
                self.num_tokens - at,
                tuple(_slice(leaf, at, self.num_tokens) for leaf in self.leaves),
                tuple(tail for _, tail in far),
            ),
        )
        evaluate([part.leaves for part in parts])
        return parts

    def range(self, start: int, end: int) -> KvPart:
        """Return lazy slices of the tokens [start, end)."""
        return KvPart(
            tuple(map_arrays(lambda x: x[..., start:end, :], leaf) for leaf in self.leaves),
            tuple(span.range(start, end) for span in self.far),
        )


def read_range(leaves: Leaves, start: int, end: int) -> KvPart:
    """Return lazy slices of the tokens [start, end) of live buffers.

    The caller must evaluate or copy the slices before the buffers are written again.
    """
    return KvPart(
        tuple(_slices(leaf, start, end) for leaf in leaves.kv),
        tuple(caches.range(start, end) for caches in leaves.far),
    )


def copy_range(leaves: Leaves, start: int, end: int) -> KvArrays:
    """Return a copy of the K/V of the tokens [start, end) of live buffers."""
    copied = tuple(_slice((leaf.keys, leaf.values), start, end) for leaf in leaves.kv)
    evaluate(copied)
    return KvArrays(end - start, copied, tuple(caches.copy(start, end) for caches in leaves.far))


def cut(leaves: Leaves, num_tokens: int) -> None:
    """Remove the tokens after num_tokens from the leaves. The buffers keep their size."""
    for leaf in leaves.kv:
        assert leaf.offset >= num_tokens
        leaf.trim(leaf.offset - num_tokens)
        assert leaf.offset == num_tokens
    for caches in leaves.far:
        caches.cut(num_tokens)


def capacity(leaf: KvLeaf) -> int:
    """Return the number of tokens that the buffer of a leaf can hold without growing."""
    return next((array.shape[-2] for array in arrays_in(leaf.keys)), 0)


def least_capacity(leaves: Leaves) -> int:
    """Return the number of tokens that all K/V buffers can hold without growing.

    0 if a buffer does not exist yet, and for caches without K/V.
    """
    held = [capacity(leaf) for leaf in leaves.kv]
    return min([*held, *(caches.capacity for caches in leaves.far)], default=0)


def buffer_bytes(leaves: Leaves) -> int:
    """Return the number of bytes of all K/V buffers, including unused capacity."""
    return tree_bytes(leaves.buffers) + sum(caches.nbytes for caches in leaves.far)


def holds(leaves: Leaves, num_tokens: int) -> bool:
    """Return True if no K/V leaf has fewer than num_tokens tokens."""
    return all(part.num_tokens >= num_tokens for part in leaves.far) and all(
        leaf.offset >= num_tokens for leaf in leaves.kv
    )


def roomy(num_tokens: int) -> int:
    """Return the capacity of a new buffer for num_tokens.

    The capacity is an eighth more than num_tokens, rounded up to a multiple of STEP.
    """
    return round_up(num_tokens + num_tokens // 8)


def max_roomy(capacity: int) -> int:
    """Return a number of tokens close to the highest whose new buffer has at most this capacity."""
    return capacity // STEP * STEP * 8 // 9


def reserve(leaves: Leaves, num_tokens: int) -> int:
    """Grow each buffer that cannot hold num_tokens. The new capacity is roomy(num_tokens).

    Returns:
        Number of bytes copied. 0 if all buffers were large enough, or if no buffer exists yet.
    """
    copied = 0
    for leaf in leaves.kv:
        if leaf.keys is None or capacity(leaf) >= num_tokens:
            continue
        copied += tree_bytes((leaf.keys, leaf.values)) * leaf.offset // capacity(leaf)
        _grow(leaf, (), leaf.offset, roomy(num_tokens))
    if copied:
        evaluate(leaves.buffers)
    return copied + sum(caches.reserve(num_tokens) for caches in leaves.far)


def growth(leaves: Leaves, num_tokens: int) -> int:
    """Return the number of bytes that reserve() would add to the buffers."""
    needed = sum(caches.growth(num_tokens) for caches in leaves.far)
    for leaf in leaves.kv:
        if leaf.keys is not None and (held := capacity(leaf)) < num_tokens:
            needed += tree_bytes((leaf.keys, leaf.values)) * (roomy(num_tokens) - held) // held
    return needed


def append_slices(leaves: Leaves, parts: Sequence[KvPart], num_tokens: int, room: int) -> int:
    """Append slices of K/V to the leaves. Each leaf then holds num_tokens tokens.

    A buffer with enough capacity is written in place. Any other buffer is concatenated with the
    slices into a new buffer, which has capacity for `room` tokens.

    Args:
        leaves: the leaves of one conversation.
        parts: results of `range` or `read_range`, in the order of the tokens.
        num_tokens: number of tokens in a leaf after the call.
        room: number of tokens that a new buffer should hold.

    Returns:
        Number of bytes appended.
    """
    for index, leaf in enumerate(leaves.kv):
        added = [part.leaves[index] for part in parts]
        if capacity(leaf) >= num_tokens:
            _write((leaf.keys, leaf.values), leaf.offset, added)
        else:
            _grow(leaf, added, num_tokens, round_up(max(room, num_tokens)))
        leaf.offset = num_tokens
    evaluate(leaves.buffers)
    appended = sum(tree_bytes(part.leaves) for part in parts)
    for number, caches in enumerate(leaves.far):
        appended += caches.append([part.far[number] for part in parts], num_tokens, room)
    return appended


def _grow(leaf: KvLeaf, added: Sequence[object], num_tokens: int, room: int) -> None:
    held = () if leaf.keys is None else (_slices(leaf, 0, leaf.offset),)
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


def _slices(leaf: KvLeaf, start: int, end: int) -> object:
    return map_arrays(lambda x: x[..., start:end, :], (leaf.keys, leaf.values))


def _slice(tree: object, start: int, end: int) -> object:
    return map_arrays(lambda x: owned(x[..., start:end, :]), tree)


def round_up(num_tokens: int) -> int:
    """Return num_tokens, rounded up to a multiple of STEP."""
    return -(-num_tokens // STEP) * STEP


def _join(trees: Sequence[object], num_tokens: int, room: int) -> tuple[object, object]:
    """Concatenate trees of arrays along the token axis, and pad the result with zeros.

    The result holds num_tokens tokens and has space for `room` tokens. All trees have the same
    structure. A single concatenation copies each byte only once.
    """
    rows = zip(*(arrays_in(tree) for tree in trees), strict=True)

    def join(row: Sequence[mx.array]) -> mx.array:
        *lead, _, dim = row[0].shape
        padding = mx.zeros((*lead, room - num_tokens, dim), row[0].dtype)
        return mx.concatenate([*row, padding], axis=-2)

    joined = (join(row) for row in rows)
    return cast("tuple[object, object]", map_arrays(lambda _: next(joined), trees[0]))
