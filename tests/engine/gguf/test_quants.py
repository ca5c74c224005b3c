from __future__ import annotations

import struct
from collections.abc import Callable

import mlx.core as mx
import numpy as np
import pytest
from numpy.typing import NDArray

from engine.gguf import quants
from engine.gguf.reader import TensorKind
from tests.fakes.gguf_writer import block_of, random_tensor

SHAPE = (5, 512)


def half(block: bytes, offset: int) -> float:
    return struct.unpack_from("<e", block, offset)[0]


def slow_q4_0(block: bytes) -> list[float]:
    d, codes = half(block, 0), block[2:18]
    return [d * ((c & 15) - 8) for c in codes] + [d * ((c >> 4) - 8) for c in codes]


def slow_q4_1(block: bytes) -> list[float]:
    d, m, codes = half(block, 0), half(block, 2), block[4:20]
    return [d * (c & 15) + m for c in codes] + [d * (c >> 4) + m for c in codes]


def slow_q5(block: bytes, high_at: int) -> list[int]:
    high, codes = (
        int.from_bytes(block[high_at : high_at + 4], "little"),
        block[high_at + 4 : high_at + 20],
    )
    low = [c & 15 for c in codes] + [c >> 4 for c in codes]
    return [code | (high >> i & 1) << 4 for i, code in enumerate(low)]


def slow_q5_0(block: bytes) -> list[float]:
    return [half(block, 0) * (code - 16) for code in slow_q5(block, 2)]


def slow_q5_1(block: bytes) -> list[float]:
    return [half(block, 0) * code + half(block, 2) for code in slow_q5(block, 4)]


def slow_q8_0(block: bytes) -> list[float]:
    return [half(block, 0) * code for code in struct.unpack("<32b", block[2:34])]


def six_bits(packed: bytes, group: int) -> tuple[int, int]:
    if group < 4:
        return packed[group] & 63, packed[group + 4] & 63
    mixed = packed[group + 4]
    return (mixed & 15) | packed[group - 4] >> 6 << 4, (mixed >> 4) | packed[group] >> 6 << 4


def slow_k(block: bytes, high: bytes, codes: bytes) -> list[float]:
    values: list[float] = []
    for i in range(256):
        group = i // 32
        scale, minimum = six_bits(block[4:16], group)
        pair = codes[group // 2 * 32 + i % 32]
        code = pair >> 4 if group % 2 else pair & 15
        if high:
            code |= (high[i % 32] >> group & 1) << 4
        values.append(half(block, 0) * scale * code - half(block, 2) * minimum)
    return values


def slow_q4_k(block: bytes) -> list[float]:
    return slow_k(block, b"", block[16:])


def slow_q5_k(block: bytes) -> list[float]:
    return slow_k(block, block[16:48], block[48:])


def slow_q6_k(block: bytes) -> list[float]:
    low, high, scales = block[:128], block[128:192], struct.unpack("<16b", block[192:208])
    values: list[float] = []
    for i in range(256):
        part, run, place = i // 128, i % 128 // 32, i % 32
        pair = low[part * 64 + run % 2 * 32 + place]
        code = (pair >> 4 if run >= 2 else pair & 15) | (
            high[part * 32 + place] >> 2 * run & 3
        ) << 4
        values.append(half(block, 208) * scales[i // 16] * (code - 32))
    return values


UNEVEN = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)


def slow_uneven(codes: bytes, scale: float) -> list[float]:
    low, high = [UNEVEN[c & 15] for c in codes], [UNEVEN[c >> 4] for c in codes]
    return [scale * value for value in low + high]


def slow_iq4_nl(block: bytes) -> list[float]:
    return slow_uneven(block[2:], half(block, 0))


def slow_iq4_xs(block: bytes) -> list[float]:
    values: list[float] = []
    high = int.from_bytes(block[2:4], "little")
    for group in range(8):
        low = block[4 + group // 2] >> 4 * (group % 2) & 15
        scale = (low | (high >> 2 * group & 3) << 4) - 32
        codes = block[8 + 16 * group : 24 + 16 * group]
        values += slow_uneven(codes, half(block, 0) * scale)
    return values


SLOW: dict[TensorKind, Callable[[bytes], list[float]]] = {
    TensorKind.F32: lambda block: list(struct.unpack("<f", block)),
    TensorKind.F16: lambda block: list(struct.unpack("<e", block)),
    TensorKind.BF16: lambda block: list(struct.unpack("<f", b"\0\0" + block)),
    TensorKind.Q4_0: slow_q4_0,
    TensorKind.Q4_1: slow_q4_1,
    TensorKind.Q5_0: slow_q5_0,
    TensorKind.Q5_1: slow_q5_1,
    TensorKind.Q8_0: slow_q8_0,
    TensorKind.Q4_K: slow_q4_k,
    TensorKind.Q5_K: slow_q5_k,
    TensorKind.Q6_K: slow_q6_k,
    TensorKind.IQ4_NL: slow_iq4_nl,
    TensorKind.IQ4_XS: slow_iq4_xs,
}
# The scales of these formats are products, which float16 rounds.
PRODUCTS = (TensorKind.Q4_K, TensorKind.Q5_K, TensorKind.IQ4_XS)
REPACKED = [kind for kind in TensorKind if quants.affine_bits(kind) and kind is not TensorKind.Q6_K]


def raw_rows(kind: TensorKind, seed: int = 0) -> NDArray[np.uint8]:
    tensor = random_tensor("w", kind, SHAPE, np.random.default_rng(seed))
    return np.frombuffer(tensor.raw, np.uint8).reshape(SHAPE[0], -1)


def from_mlx(packed: quants.Packed, bits: int) -> NDArray[np.float32]:
    scales, biases = (mx.array(part.astype(np.float32)) for part in (packed.scales, packed.biases))
    values = mx.dequantize(mx.array(packed.weight), scales, biases, group_size=32, bits=bits)
    return np.array(values, np.float32)


@pytest.mark.parametrize("kind", TensorKind)
def test_dequantised_values_equal_a_slow_reference(kind: TensorKind):
    raw = raw_rows(kind)
    size = block_of(kind).num_bytes
    flat = raw.tobytes()
    slow = [value for at in range(0, len(flat), size) for value in SLOW[kind](flat[at : at + size])]

    values = quants.dequantised(kind, raw)

    assert values.shape == SHAPE
    np.testing.assert_allclose(values.ravel(), slow, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", REPACKED)
def test_mlx_reads_repacked_codes_as_the_same_values(kind: TensorKind):
    raw = raw_rows(kind)
    affine = quants.quantised(kind, raw)
    packed = quants.packed(affine)

    seen_by_mlx = from_mlx(packed, affine.bits)

    exact = quants.dequantised(kind, raw)
    largest = np.abs(exact).reshape(SHAPE[0], -1, 32).max(axis=2).repeat(32, axis=1)
    assert affine.error == 0
    assert (np.abs(seen_by_mlx - exact) <= 2e-3 * largest).all()
    if kind not in PRODUCTS:
        assert packed.error == 0
        np.testing.assert_allclose(seen_by_mlx, exact, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", PRODUCTS)
def test_every_value_is_within_the_stated_scale_error(kind: TensorKind):
    affine = quants.quantised(kind, raw_rows(kind))
    packed = quants.packed(affine)
    top = 2**affine.bits - 1
    reach = np.maximum(np.abs(affine.biases), np.abs(affine.biases + affine.scales * top))

    moved = np.abs(from_mlx(packed, affine.bits) - affine.values()).reshape(*reach.shape, 32)

    assert 1e-5 < packed.error < 2e-3
    assert (moved <= packed.error * reach[..., None] * 1.001).all()


def test_q6_k_is_requantised_within_the_stated_error():
    raw = raw_rows(TensorKind.Q6_K)
    exact = quants.dequantised(TensorKind.Q6_K, raw).reshape(SHAPE[0], -1, 32)

    affine = quants.quantised(TensorKind.Q6_K, raw)
    seen_by_mlx = from_mlx(quants.packed(affine), affine.bits).reshape(exact.shape)

    shares = np.abs(seen_by_mlx - exact).max(axis=2) / np.abs(exact).max(axis=2)
    assert affine.bits == 8
    assert 0 < affine.error < 6e-3
    assert shares.max() == pytest.approx(affine.error, rel=1e-3)


def test_groups_of_equal_values_are_quantised_exactly():
    values = np.zeros((1, 64), np.float32)
    values[0, 32:] = -0.5
    affine = quants.requantised(values)
    assert np.array_equal(affine.values(), values)
    assert affine.error == 0
