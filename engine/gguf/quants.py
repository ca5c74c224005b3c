"""Convert quantised tensors from the block formats of GGUF to the format of MLX.

In the MLX format used here, 32 quantised codes share a scale and a bias. The formula of a value is
scale * code + bias. Most GGUF formats use the same formula. Codes of these formats are copied
unchanged, and only scales and biases are rounded to float16. The 16 codes of IQ4_NL and IQ4_XS
stand for uneven values from -127 to 113. These values become codes of 8 bits, without an error. The
format Q6_K has groups of 16 codes, and MLX does not support this group size. So values in Q6_K are
quantised again with 8 bits.

All functions take raw rows of a tensor, so that callers can convert a large tensor in slices. The
module needs only numpy. Call on any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.gguf.reader import BLOCKS, Bytes, TensorKind

Floats = NDArray[np.float32]
Words = NDArray[np.uint32]

GROUP_SIZE: Final = 32
REQUANTISED_BITS: Final = 8
# The values of the 16 codes of IQ4_NL and IQ4_XS, plus 128. They are codes of 8 bits in MLX.
_UNEVEN: Final = np.array(
    [1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241], np.uint8
)
_LOW: Final = np.uint8(15)
_FOUR: Final = np.uint8(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Affine:
    """Quantised rows of a tensor, with one code per byte and scales in float32."""

    bits: int  # number of bits per code
    codes: Bytes  # shape (rows, columns)
    scales: Floats  # shape (rows, columns / 32)
    biases: Floats  # shape (rows, columns / 32)
    # Largest error of a value, as a share of the largest value in the same group. The error comes
    # from quantising again, so it is 0 if the codes were copied.
    error: float = 0.0

    def values(self) -> Floats:
        grouped = self.codes.reshape(*self.scales.shape, GROUP_SIZE).astype(np.float32)
        values = grouped * self.scales[..., None] + self.biases[..., None]
        return values.reshape(self.codes.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """Quantised rows of a tensor as MLX stores them."""

    weight: Words  # packed codes, shape (rows, columns * bits / 32)
    scales: NDArray[np.float16]  # shape (rows, columns / 32)
    biases: NDArray[np.float16]  # shape (rows, columns / 32)
    # Largest error of a value, as a share of the largest value that its group can represent. The
    # error comes from rounding scales and biases to float16.
    error: float


def affine_bits(kind: TensorKind) -> int | None:
    """Return the bits per weight after conversion of a GGUF format to MLX.

    Returns:
        None if the format is not quantised.
    """
    if kind is TensorKind.Q6_K:
        return REQUANTISED_BITS
    return _REPACKED[kind].bits if kind in _REPACKED else None


def dequantised(kind: TensorKind, raw: Bytes) -> Floats:
    """Convert raw rows of any GGUF format to float32 values of shape (rows, columns)."""
    match kind:
        case TensorKind.F32:
            return raw.view("<f4").astype(np.float32)
        case TensorKind.F16:
            return raw.view("<f2").astype(np.float32)
        case TensorKind.BF16:
            return (raw.view("<u2").astype(np.uint32) << 16).view(np.float32)
        case TensorKind.Q6_K:
            return _dequantised_q6_k(raw)
        case _:
            return _repacked(kind, raw).values()


def quantised(kind: TensorKind, raw: Bytes) -> Affine:
    """Convert raw rows of a quantised GGUF format to codes, scales and biases.

    The codes are copied from the file, except in the format Q6_K. Values in Q6_K are quantised
    again.
    """
    if kind is TensorKind.Q6_K:
        return requantised(_dequantised_q6_k(raw))
    return _repacked(kind, raw)


def _repacked(kind: TensorKind, raw: Bytes) -> Affine:
    repacking = _REPACKED[kind]
    groups = repacking.take_apart(raw.reshape(-1, _BLOCK_BYTES[kind]))
    return Affine(
        bits=repacking.bits,
        codes=groups.codes.reshape(len(raw), -1),
        scales=groups.scales.reshape(len(raw), -1),
        biases=groups.biases.reshape(len(raw), -1),
    )


def requantised(values: Floats) -> Affine:
    """Quantise values with 8 bits, in groups of 32 values.

    In each group, code 0 stands for the lowest value and code 255 for the highest value.
    """
    groups = values.reshape(values.shape[0], -1, GROUP_SIZE)
    low, high = _over_groups(np.minimum, groups), _over_groups(np.maximum, groups)
    top = np.float32(2**REQUANTISED_BITS - 1)
    # Round scale and bias to float16 before choosing the codes, so that the codes compensate for
    # this rounding.
    scales = ((high - low) / top).astype(np.float16).astype(np.float32)
    biases = low.astype(np.float16).astype(np.float32)
    steps = np.divide(
        groups - biases[..., None],
        scales[..., None],
        out=np.zeros_like(groups),
        where=scales[..., None] > 0,
    )
    codes = np.clip(np.rint(steps), 0, top).astype(np.uint8).reshape(values.shape)
    affine = Affine(bits=REQUANTISED_BITS, codes=codes, scales=scales, biases=biases)
    moved = np.abs(affine.values().reshape(groups.shape) - groups)
    largest = np.maximum(np.abs(low), np.abs(high))
    return replace(affine, error=_largest_share(_over_groups(np.maximum, moved), largest))


def _over_groups(extreme: np.ufunc, groups: Floats) -> Floats:
    """Return the minimum or maximum of each group, the last dimension, of 32 values.

    Halving the groups is three times as fast as a reduction over such a short dimension.
    """
    while (size := groups.shape[-1]) > 1:
        groups = extreme(groups[..., : size // 2], groups[..., size // 2 :])
    return groups[..., 0]


def joined(pieces: list[tuple[slice | NDArray[np.intp], Affine]]) -> Affine:
    """Join rows that come from several tensors.

    Codes with fewer bits are valid codes of more bits with the same scale and bias.

    Args:
        pieces: rows, and their positions in the result.
    """
    if len(pieces) == 1 and isinstance(pieces[0][0], slice):
        return pieces[0][1]
    num_rows = sum(len(affine.codes) for _, affine in pieces)
    first = pieces[0][1]
    codes = np.empty((num_rows, first.codes.shape[1]), np.uint8)
    scales = np.empty((num_rows, first.scales.shape[1]), np.float32)
    biases = np.empty_like(scales)
    for places, affine in pieces:
        codes[places], scales[places], biases[places] = affine.codes, affine.scales, affine.biases
    return Affine(
        bits=max(affine.bits for _, affine in pieces),
        codes=codes,
        scales=scales,
        biases=biases,
        error=max(affine.error for _, affine in pieces),
    )


def group_order(columns: NDArray[np.intp]) -> NDArray[np.intp] | None:
    """Return the order of groups of 32 columns that has the same effect as an order of columns.

    Returns:
        None if the order of columns divides a group.
    """
    if len(columns) % GROUP_SIZE:
        return None
    groups = columns.reshape(-1, GROUP_SIZE)
    starts = groups[:, 0]
    whole = (groups == starts[:, None] + np.arange(GROUP_SIZE)).all() and not (
        starts % GROUP_SIZE
    ).any()
    return starts // GROUP_SIZE if whole else None


def with_columns(affine: Affine, columns: NDArray[np.intp]) -> Affine:
    """Reorder the columns of quantised rows. The order must not divide a group."""
    order = group_order(columns)
    assert order is not None, "the order of columns divides a group"
    return replace(
        affine,
        codes=affine.codes[:, columns],
        scales=affine.scales[:, order],
        biases=affine.biases[:, order],
    )


def packed(affine: Affine, bits: int | None = None) -> Packed:
    """Pack quantised rows in MLX's format with bits per code, and round scales and biases.

    Scales and biases are rounded to float16. bits is at least the number of bits of the codes, and
    equal to it if it is None.

    The codes of a row form one little-endian stream of bits, divided into words of 32 bits.
    """
    scales, biases = affine.scales.astype(np.float16), affine.biases.astype(np.float16)
    return Packed(
        weight=_pack(affine.codes, bits or affine.bits),
        scales=scales,
        biases=biases,
        error=_rounding_error(affine, scales, biases),
    )


def _pack(codes: Bytes, bits: int) -> Words:
    match bits:
        case 8:
            stream = codes
        case 4:
            stream = codes[:, 0::2] | (codes[:, 1::2] << 4)
        case _:
            flat = np.unpackbits(codes[:, :, None], axis=2, count=bits, bitorder="little")
            stream = np.packbits(flat.reshape(len(codes), -1), axis=1, bitorder="little")
    return np.ascontiguousarray(stream).view("<u4")


def _rounding_error(
    affine: Affine, scales: NDArray[np.float16], biases: NDArray[np.float16]
) -> float:
    top = np.float32(2**affine.bits - 1)
    moved = np.abs(scales - affine.scales) * top + np.abs(biases - affine.biases)
    largest = np.maximum(np.abs(affine.biases), np.abs(affine.biases + affine.scales * top))
    return _largest_share(moved, largest)


def _largest_share(moved: Floats, largest: Floats) -> float:
    return float(np.divide(moved, largest, out=np.zeros_like(moved), where=largest > 0).max())


def _float16(raw: Bytes) -> Floats:
    return np.ascontiguousarray(raw).view("<f2").astype(np.float32)


def _nibbles(raw: Bytes) -> Bytes:
    """Return the low four bits of all bytes, followed by the high four bits of all bytes."""
    return np.concatenate([raw & _LOW, raw >> _FOUR], axis=-1)


@dataclass(frozen=True, slots=True)
class _Groups:
    """The content of GGUF blocks, divided into groups of 32 values."""

    codes: Bytes  # quantised codes, in the order of the values
    scales: Floats  # one per group of 32 values
    biases: Floats  # one per group of 32 values


def _q4_0(blocks: Bytes) -> _Groups:
    scales = _float16(blocks[:, :2])
    return _Groups(_nibbles(blocks[:, 2:]), scales, -8 * scales)


def _q4_1(blocks: Bytes) -> _Groups:
    return _Groups(_nibbles(blocks[:, 4:]), _float16(blocks[:, :2]), _float16(blocks[:, 2:4]))


def _q5_0(blocks: Bytes) -> _Groups:
    scales = _float16(blocks[:, :2])
    codes = _nibbles(blocks[:, 6:]) | _fifth_bits(blocks[:, 2:6])
    return _Groups(codes, scales, -16 * scales)


def _q5_1(blocks: Bytes) -> _Groups:
    codes = _nibbles(blocks[:, 8:]) | _fifth_bits(blocks[:, 4:8])
    return _Groups(codes, _float16(blocks[:, :2]), _float16(blocks[:, 2:4]))


def _q8_0(blocks: Bytes) -> _Groups:
    scales = _float16(blocks[:, :2])
    # Flip the top bit of each signed code, which adds 128 and makes the code unsigned.
    return _Groups(blocks[:, 2:] ^ np.uint8(128), scales, -128 * scales)


def _fifth_bits(raw: Bytes) -> Bytes:
    """Return the fifth bits of a block's 32 codes, one per byte, each with the value 16 or 0."""
    return np.unpackbits(np.ascontiguousarray(raw), axis=-1, bitorder="little") << _FOUR


def _q4_k(blocks: Bytes) -> _Groups:
    """Unpack Q4_K blocks, which contain 256 values in eight groups.

    Q5_K blocks have the same layout plus a fifth bit per value. From a Q5_K block, this function
    unpacks only the low four bits of each value.
    """
    first, second, mixed = blocks[:, 4:8], blocks[:, 8:12], blocks[:, 12:16]
    # Twelve bytes contain eight scales and eight minima of six bits each. Scales 0 to 3 are the low
    # six bits of `first`. Scales 4 to 7 have their low four bits in `mixed` and their high two bits
    # in the top bits of `first`. The minima are stored in the same way in `second` and `mixed`.
    scales = np.concatenate([first & 63, (mixed & 15) | (first >> 6 << 4)], axis=-1)
    minima = np.concatenate([second & 63, (mixed >> 4) | (second >> 6 << 4)], axis=-1)
    runs = blocks[:, -128:].reshape(-1, 4, 32)
    return _Groups(
        codes=np.stack([runs & _LOW, runs >> _FOUR], axis=2).reshape(-1, 8, 32),
        scales=_float16(blocks[:, :2]) * scales,
        biases=-_float16(blocks[:, 2:4]) * minima,
    )


def _q5_k(blocks: Bytes) -> _Groups:
    groups = _q4_k(blocks)
    # Bit g of byte i is the fifth bit of value i in group g.
    shifts = np.arange(8, dtype=np.uint8)[:, None]
    fifth = (blocks[:, None, 16:48] >> shifts & np.uint8(1)) << _FOUR
    return replace(groups, codes=groups.codes | fifth)


def _iq4_nl(blocks: Bytes) -> _Groups:
    scales = _float16(blocks[:, :2])
    return _Groups(_UNEVEN[_nibbles(blocks[:, 2:])], scales, -128 * scales)


def _iq4_xs(blocks: Bytes) -> _Groups:
    """Unpack IQ4_XS blocks, which contain 256 values in eight groups.

    A group's scale has six bits. Four of them are in the nibbles of bytes 4 to 7, and two in the
    16-bit number at byte 2. The scale is stored plus 32.
    """
    low = np.stack([blocks[:, 4:8] & _LOW, blocks[:, 4:8] >> _FOUR], axis=2).reshape(-1, 8)
    both = np.ascontiguousarray(blocks[:, 2:4]).view("<u2")
    high = both >> np.arange(0, 16, 2, dtype=np.uint16) & np.uint16(3)
    stored = (low | high << 4).astype(np.int32) - 32
    scales = _float16(blocks[:, :2]) * stored.astype(np.float32)
    runs = blocks[:, 8:].reshape(-1, 8, 16)
    return _Groups(_UNEVEN[_nibbles(runs)], scales, -128 * scales)


def _dequantised_q6_k(raw: Bytes) -> Floats:
    blocks = raw.reshape(-1, 210)
    low = blocks[:, :128].reshape(-1, 2, 2, 32)  # shape (blocks, halves, runs, 32)
    high = blocks[:, 128:192].reshape(-1, 2, 1, 32)
    low_bits = np.concatenate([low & _LOW, low >> _FOUR], axis=2)  # shape (blocks, halves, 4, 32)
    shifts = np.array([0, 2, 4, 6], np.uint8)[:, None]
    codes = (low_bits | (high >> shifts & 3) << 4).astype(np.int8) - np.int8(32)
    scales = _float16(blocks[:, 208:210]) * blocks[:, 192:208].view(np.int8)
    values = scales[:, :, None] * codes.reshape(-1, 16, 16)
    return values.reshape(len(raw), -1)


@dataclass(frozen=True, slots=True)
class _Repacking:
    bits: int  # bits per code in MLX
    take_apart: Callable[[Bytes], _Groups]


_REPACKED: Final[Mapping[TensorKind, _Repacking]] = {
    TensorKind.Q4_0: _Repacking(4, _q4_0),
    TensorKind.Q4_1: _Repacking(4, _q4_1),
    TensorKind.Q5_0: _Repacking(5, _q5_0),
    TensorKind.Q5_1: _Repacking(5, _q5_1),
    TensorKind.Q8_0: _Repacking(8, _q8_0),
    TensorKind.Q4_K: _Repacking(4, _q4_k),
    TensorKind.Q5_K: _Repacking(5, _q5_k),
    TensorKind.IQ4_NL: _Repacking(8, _iq4_nl),
    TensorKind.IQ4_XS: _Repacking(8, _iq4_xs),
}
_BLOCK_BYTES: Final = {block.kind: block.num_bytes for block in BLOCKS.values()}
