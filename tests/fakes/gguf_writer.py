"""Small GGUF files for tests: random tensors of every block format, and a two-layer llama."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.gguf.header import Value
from engine.gguf.reader import BLOCKS, BlockFormat, TensorKind

KIND_IDS: Final = {block.kind: kind_id for kind_id, block in BLOCKS.items()}
# Byte offsets of the half-precision scales in a block. Tests write moderate numbers
# there, because random bytes are sometimes infinite.
_HALVES: Final[Mapping[TensorKind, Sequence[int]]] = {
    TensorKind.Q4_0: (0,),
    TensorKind.Q4_1: (0, 2),
    TensorKind.Q5_0: (0,),
    TensorKind.Q5_1: (0, 2),
    TensorKind.Q8_0: (0,),
    TensorKind.Q4_K: (0, 2),
    TensorKind.Q5_K: (0, 2),
    TensorKind.Q6_K: (208,),
    TensorKind.IQ4_NL: (0,),
    TensorKind.IQ4_XS: (0,),
}
CHAT_TEMPLATE: Final = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL_TOKENS: Final = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenTensor:
    name: str
    kind: TensorKind
    shape: tuple[int, ...]  # rows first; a GGUF file stores the sizes in reverse order
    raw: bytes


def block_of(kind: TensorKind) -> BlockFormat:
    return BLOCKS[KIND_IDS[kind]]


def random_tensor(
    name: str, kind: TensorKind, shape: tuple[int, ...], rng: np.random.Generator
) -> WrittenTensor:
    """Return a random tensor. Quantised blocks have random codes and scales from 0.001 to 0.01."""
    block = block_of(kind)
    num_blocks = math.prod(shape) // block.num_values
    if kind in _HALVES:
        blocks = rng.integers(0, 256, (num_blocks, block.num_bytes), dtype=np.uint8)
        for offset in _HALVES[kind]:
            halves = rng.uniform(0.001, 0.01, num_blocks).astype("<f2")
            blocks[:, offset : offset + 2] = halves.view(np.uint8).reshape(-1, 2)
        return WrittenTensor(name=name, kind=kind, shape=shape, raw=blocks.tobytes())
    return plain_tensor(name, kind, rng.normal(0, 0.05, shape).astype(np.float32))


def plain_tensor(name: str, kind: TensorKind, values: NDArray[np.floating]) -> WrittenTensor:
    match kind:
        case TensorKind.F32:
            raw = values.astype("<f4").tobytes()
        case TensorKind.F16:
            raw = values.astype("<f2").tobytes()
        case _:
            assert kind is TensorKind.BF16
            raw = (values.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()
    return WrittenTensor(name=name, kind=kind, shape=values.shape, raw=raw)


def q8_0(name: str, values: NDArray[np.float32]) -> WrittenTensor:
    """Return a tensor whose values are quantised with 8 bits, in blocks of 32."""
    blocks = values.reshape(-1, 32)
    scales = (np.abs(blocks).max(axis=1) / 127).astype("<f2")
    codes = np.rint(blocks / scales.astype(np.float32)[:, None]).astype(np.int8)
    raw = np.concatenate([scales.view(np.uint8).reshape(-1, 2), codes.view(np.uint8)], axis=1)
    return WrittenTensor(name=name, kind=TensorKind.Q8_0, shape=values.shape, raw=raw.tobytes())


def gguf_bytes(
    metadata: Mapping[str, Value],
    tensors: Sequence[WrittenTensor],
    *,
    version: int = 3,
    alignment: int = 32,
) -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    for key, value in metadata.items():
        head += _text(key) + _value(value)
    body = b""
    for tensor in tensors:
        body += b"\0" * (-len(body) % alignment)
        head += _text(tensor.name) + struct.pack("<I", len(tensor.shape))
        head += b"".join(struct.pack("<Q", size) for size in reversed(tensor.shape))
        head += struct.pack("<IQ", KIND_IDS[tensor.kind], len(body))
        body += tensor.raw
    return head + b"\0" * (-len(head) % alignment) + body


def byte_level_alphabet() -> list[str]:
    """Return the printable characters by which GPT-2 represents the 256 bytes, in byte order."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TinyLlama:
    """Metadata and tensors of a two-layer llama. A test may damage them before to_bytes()."""

    metadata: dict[str, Value]
    tensors: list[WrittenTensor]

    def to_bytes(self) -> bytes:
        return gguf_bytes(self.metadata, self.tensors)


HIDDEN: Final = 256
NUM_HEADS: Final = 4
NUM_KV_HEADS: Final = 2
HEAD_DIM: Final = 64
FEED_FORWARD: Final = 256


def tiny_metadata() -> dict[str, Value]:
    merges = ["h e", "l l", "he ll", "hell o", "Ġ w", "1 2"]
    tokens = [
        *SPECIAL_TOKENS,
        *byte_level_alphabet(),
        *(merge.replace(" ", "") for merge in merges),
    ]
    return {
        "general.architecture": "llama",
        "general.name": "Tiny",
        "general.license": "apache-2.0",
        "llama.block_count": 2,
        "llama.context_length": 512,
        "llama.embedding_length": HIDDEN,
        "llama.feed_forward_length": FEED_FORWARD,
        "llama.attention.head_count": NUM_HEADS,
        "llama.attention.head_count_kv": NUM_KV_HEADS,
        "llama.rope.freq_base": 10000.0,
        "llama.rope.dimension_count": HEAD_DIM,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3] * 3 + [1] * (len(tokens) - 3),
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.padding_token_id": 2,
        "tokenizer.chat_template": CHAT_TEMPLATE,
    }


def tiny_shapes(num_tokens: int) -> dict[str, tuple[int, ...]]:
    layer = {
        "attn_norm": (HIDDEN,),
        "attn_q": (NUM_HEADS * HEAD_DIM, HIDDEN),
        "attn_k": (NUM_KV_HEADS * HEAD_DIM, HIDDEN),
        "attn_v": (NUM_KV_HEADS * HEAD_DIM, HIDDEN),
        "attn_output": (HIDDEN, NUM_HEADS * HEAD_DIM),
        "ffn_norm": (HIDDEN,),
        "ffn_gate": (FEED_FORWARD, HIDDEN),
        "ffn_up": (FEED_FORWARD, HIDDEN),
        "ffn_down": (HIDDEN, FEED_FORWARD),
    }
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd": (num_tokens, HIDDEN),
        "output_norm": (HIDDEN,),
    }
    for index in range(2):
        shapes |= {f"blk.{index}.{name}": shape for name, shape in layer.items()}
    return {f"{name}.weight": shape for name, shape in shapes.items()}


def tiny_llama(matrix_kinds: Sequence[TensorKind] = (TensorKind.Q4_1,), seed: int = 0) -> TinyLlama:
    """Return a llama with random weights. Vectors have the kind F32.

    Matrices cycle through `matrix_kinds`."""
    rng = np.random.default_rng(seed)
    metadata = tiny_metadata()
    tokens = metadata["tokenizer.ggml.tokens"]
    assert isinstance(tokens, list)
    tensors: list[WrittenTensor] = []
    num_matrices = 0
    for name, shape in tiny_shapes(len(tokens)).items():
        is_matrix = len(shape) > 1
        kind = matrix_kinds[num_matrices % len(matrix_kinds)] if is_matrix else TensorKind.F32
        num_matrices += is_matrix
        tensors.append(random_tensor(name, kind, shape, rng))
    return TinyLlama(metadata=metadata, tensors=tensors)


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def _value(value: Value) -> bytes:
    match value:
        case bool():
            return struct.pack("<I?", 7, value)
        case int():
            return struct.pack("<II", 4, value)
        case float():
            return struct.pack("<If", 6, value)
        case str():
            return struct.pack("<I", 8) + _text(value)
        case _:
            return _list(value)


def _list(values: list[str] | list[int] | list[float] | list[bool]) -> bytes:
    match values[0]:
        case str():
            type_id, packed = 8, b"".join(_text(str(value)) for value in values)
        case int():
            type_id, packed = 5, struct.pack(f"<{len(values)}i", *values)
        case _:
            type_id, packed = 6, struct.pack(f"<{len(values)}f", *values)
    return struct.pack("<IIQ", 9, type_id, len(values)) + packed


def sentence_piece_metadata(*, add_space_prefix: bool) -> dict[str, Value]:
    """Return tiny_metadata with a SentencePiece tokenizer of the kind BPE instead of its own.

    It has tokens for all bytes and for some characters, and joined tokens with falling scores.
    """
    joined = ["he", "ll", "▁w", "hell", "▁h", "hello", "▁hello", "or", "ld", "▁wor", "▁world", "▁▁"]
    letters = [*"▁abcdefghijklmnopqrstuvwxyzHW0123456789.,:()#*'\n"]
    ordinary = [*joined, *letters]
    tokens = ["<unk>", *SPECIAL_TOKENS, *(f"<0x{byte:02X}>" for byte in range(256)), *ordinary]
    kinds = [2, 3, 3, 3, *[6] * 256, *[1] * len(ordinary)]
    scores = [0.0] * (len(tokens) - len(ordinary))
    scores += [-float(rank) for rank in range(1, len(ordinary) + 1)]
    return tiny_metadata() | {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.bos_token_id": 2,
        "tokenizer.ggml.eos_token_id": 3,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.padding_token_id": 1,
        "tokenizer.ggml.add_space_prefix": add_space_prefix,
    }
