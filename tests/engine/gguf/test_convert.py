from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load

from engine.errors import GgufError
from engine.gguf.convert import Rounding, plan_conversion, write_files
from engine.gguf.reader import TensorKind, read_gguf
from tests.fakes.gguf_writer import (
    HEAD_DIM,
    NUM_HEADS,
    NUM_KV_HEADS,
    TinyLlama,
    WrittenTensor,
    plain_tensor,
    random_tensor,
    tiny_llama,
)


def convert(model: TinyLlama, folder: Path) -> Rounding:
    source = folder / "model.gguf"
    source.write_bytes(model.to_bytes())
    return write_files(plan_conversion(read_gguf(source)), folder, lambda _: None)


def read_weights(folder: Path) -> dict[str, NDArray[np.float16]]:
    return load((folder / "model.safetensors").read_bytes())


def cause(model: TinyLlama, folder: Path) -> str:
    with pytest.raises(GgufError) as caught:
        convert(model, folder)
    return caught.value.problem.cause


def interleaved(rows: NDArray[np.floating], num_heads: int) -> NDArray[np.floating]:
    """Return a projection's rows in the order in which llama.cpp's converter writes them.

    In each head, row i of the first half is followed by row i of the second half.
    """
    written: list[NDArray[np.floating]] = []
    for head in np.split(rows, num_heads):
        half = len(head) // 2
        for index in range(half):
            written += [head[index], head[half + index]]
    return np.stack(written)


def test_plain_weights_get_mlx_names_and_row_order(tmp_path: Path):
    model = tiny_llama((TensorKind.F32,))
    wanted: dict[str, NDArray[np.float16]] = {}
    tensors: list[WrittenTensor] = []
    for tensor in model.tensors:
        values = np.frombuffer(tensor.raw, np.float32).reshape(tensor.shape)
        wanted[tensor.name] = values.astype(np.float16)
        heads = {"attn_q": NUM_HEADS, "attn_k": NUM_KV_HEADS}.get(tensor.name.split(".")[-2])
        tensors.append(
            plain_tensor(tensor.name, TensorKind.F32, interleaved(values, heads))
            if heads
            else tensor
        )

    convert(replace(model, tensors=tensors), tmp_path)
    weights = read_weights(tmp_path)

    assert len(weights) == len(wanted)
    for theirs, ours in {
        "token_embd": "model.embed_tokens",
        "output_norm": "model.norm",
        "blk.0.attn_q": "model.layers.0.self_attn.q_proj",
        "blk.1.attn_k": "model.layers.1.self_attn.k_proj",
        "blk.1.attn_v": "model.layers.1.self_attn.v_proj",
        "blk.1.attn_output": "model.layers.1.self_attn.o_proj",
        "blk.0.attn_norm": "model.layers.0.input_layernorm",
        "blk.0.ffn_norm": "model.layers.0.post_attention_layernorm",
        "blk.0.ffn_gate": "model.layers.0.mlp.gate_proj",
        "blk.0.ffn_up": "model.layers.0.mlp.up_proj",
        "blk.1.ffn_down": "model.layers.1.mlp.down_proj",
    }.items():
        assert np.array_equal(weights[f"{ours}.weight"], wanted[f"{theirs}.weight"]), ours


def test_quantised_rows_get_the_same_order_as_plain_ones(tmp_path: Path):
    packed = tiny_llama((TensorKind.Q8_0,))
    convert(packed, tmp_path)
    gguf = read_gguf(tmp_path / "model.gguf")
    key = gguf.tensors["blk.0.attn_k.weight"].raw
    scales = key.reshape(NUM_KV_HEADS * HEAD_DIM, -1, 34)[:, :, :2].copy().view("<f2")[:, :, 0]

    weights = read_weights(tmp_path)

    ours = weights["model.layers.0.self_attn.k_proj.scales"]
    assert np.array_equal(interleaved(ours, NUM_KV_HEADS), scales)
    assert not np.array_equal(ours, scales)


def test_config_is_made_from_the_files_metadata(tmp_path: Path):
    convert(
        tiny_llama((TensorKind.Q8_0, TensorKind.Q4_1, TensorKind.Q4_0, TensorKind.F16)), tmp_path
    )

    config = json.loads((tmp_path / "config.json").read_bytes())
    wanted = {
        "model_type": "llama",
        "hidden_size": 256,
        "num_hidden_layers": 2,
        "intermediate_size": 256,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 64,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "max_position_embeddings": 512,
        "tie_word_embeddings": True,
        "bos_token_id": 1,
        "eos_token_id": [2, 0],
    }
    assert {key: config[key] for key in wanted} == wanted
    quantisation = config["quantization"]
    assert (quantisation["group_size"], quantisation["bits"]) == (32, 4)
    assert quantisation["model.embed_tokens"] == {"group_size": 32, "bits": 8}
    # The value projection stays in float16.
    assert "model.layers.0.self_attn.v_proj" not in quantisation
    generation = json.loads((tmp_path / "generation_config.json").read_bytes())
    assert generation == {"bos_token_id": 1, "eos_token_id": [2, 0], "pad_token_id": 2}


def test_separate_output_matrix_is_not_tied_to_the_embeddings(tmp_path: Path):
    model = tiny_llama()
    output = random_tensor(
        "output.weight", TensorKind.Q6_K, model.tensors[0].shape, np.random.default_rng(1)
    )
    rounding = convert(replace(model, tensors=[*model.tensors, output]), tmp_path)

    config = json.loads((tmp_path / "config.json").read_bytes())
    assert config["tie_word_embeddings"] is False
    assert config["quantization"]["lm_head"] == {"group_size": 32, "bits": 8}
    assert rounding.scale_error == 0
    assert 0 < rounding.requantised_error < 6e-3


def test_weights_file_has_the_mlx_format_mark(tmp_path: Path):
    convert(tiny_llama(), tmp_path)
    content = (tmp_path / "model.safetensors").read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    assert header["__metadata__"] == {"format": "mlx"}


def test_progress_covers_every_byte_of_the_tensors(tmp_path: Path):
    model = tiny_llama()
    source = tmp_path / "model.gguf"
    source.write_bytes(model.to_bytes())
    heard: list[int] = []
    write_files(plan_conversion(read_gguf(source)), tmp_path, heard.append)
    assert sum(heard) == sum(len(tensor.raw) for tensor in model.tensors)


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        (
            "general.architecture",
            "mamba",
            "Rejoinder can’t run models of the kind “mamba” yet.",
        ),
        ("llama.rope.scaling.type", "yarn", "Its llama.rope.scaling.type is 'yarn'; only 'none'"),
        ("llama.expert_count", 8, "Its llama.expert_count is 8; only 0 can be imported."),
        (
            "llama.block_count",
            3,
            "It lacks 9 of the model’s tensors, for example blk.2.attn_k.weight.",
        ),
        (
            "llama.block_count",
            4_000_000_000,
            "It claims 4,000,000,000 layers, but holds 20 tensors.",
        ),
        ("llama.attention.head_count", 7, "has 256 rows, not 7 heads."),
        (
            "llama.embedding_length",
            "wide",
            "'llama.embedding_length' is missing or not a whole number.",
        ),
        (
            "llama.rope.freq_base",
            float("nan"),
            "'llama.rope.freq_base' is missing or not a number.",
        ),
    ],
)
def test_unsupported_metadata_is_refused_with_the_cause(
    tmp_path: Path, key: str, value: int | str, sentence: str
):
    model = tiny_llama()
    model.metadata[key] = value
    assert sentence in cause(model, tmp_path)


def test_unknown_tensor_is_refused_with_its_name(tmp_path: Path):
    model = tiny_llama()
    extra = plain_tensor("rope_extra.weight", TensorKind.F32, np.ones(32))
    assert "for example rope_extra.weight." in cause(
        replace(model, tensors=[*model.tensors, extra]), tmp_path
    )


def test_more_tokens_than_embeddings_are_refused(tmp_path: Path):
    model = tiny_llama()
    short = random_tensor("token_embd.weight", TensorKind.F32, (8, 256), np.random.default_rng(0))
    spoilt = replace(model, tensors=[short, *model.tensors[1:]])
    assert cause(spoilt, tmp_path) == "It has 265 tokens, but embeddings for 8."


@pytest.mark.parametrize("value", [1e6, float("nan")])
def test_values_beyond_16_bits_are_refused(tmp_path: Path, value: float):
    model = tiny_llama()
    norm = plain_tensor("output_norm.weight", TensorKind.F32, np.full(256, value))
    tensors = [norm if tensor.name == norm.name else tensor for tensor in model.tensors]
    assert cause(replace(model, tensors=tensors), tmp_path) == (
        "The tensor output_norm.weight holds values that 16 bits can’t."
    )


def test_tensor_with_four_dimensions_is_refused(tmp_path: Path):
    model = tiny_llama()
    deep = plain_tensor("output_norm.weight", TensorKind.F32, np.ones((2, 2, 2, 32)))
    tensors = [deep if tensor.name == deep.name else tensor for tensor in model.tensors]
    assert "has the shape (2, 2, 2, 32)" in cause(replace(model, tensors=tensors), tmp_path)
