from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from safetensors.numpy import save

from engine.catalog.card import ModelCard, ModelSource
from engine.catalog.inspect import find_card, read_card
from engine.errors import ModelFolderError, UntrustedCodeError
from engine.problem import Problem
from tests.fakes.model_folder import make_model, make_repository, write_json, write_weights

Spoil = Callable[[Path], object]


def card_of(folder: Path) -> ModelCard:
    return read_card(folder, ModelSource.FOLDER)


def problem_of(folder: Path) -> Problem:
    problem = card_of(folder).problem
    assert problem is not None
    return problem


def test_card_of_a_complete_folder_is_usable(tmp_path: Path):
    card = card_of(make_model(tmp_path / "Tiny-Chat"))
    assert card.usable
    assert card.name == "Tiny-Chat"
    assert card.model_type == "llama"
    assert card.context_len == 4096
    assert card.bits == 16
    assert card.num_parameters == 64
    assert card.size_bytes == (tmp_path / "Tiny-Chat" / "model.safetensors").stat().st_size
    assert not card.text_only
    assert not card.hybrid


def test_card_of_several_weight_files_counts_all_parameters(tmp_path: Path):
    card = card_of(make_model(tmp_path / "m", num_files=3))
    assert card.usable
    assert card.num_parameters == 3 * 64


def test_card_of_a_cached_repository_has_the_repository_name(tmp_path: Path):
    card = card_of(make_repository(tmp_path, "mlx-community/Qwen3.5-4B-MLX-4bit"))
    assert card.usable
    assert card.name == "Qwen3.5-4B-MLX-4bit"


@pytest.mark.parametrize(("kind", "bits"), [(np.float32, 32), (np.float16, 16)])
def test_bits_of_plain_weights_are_those_of_the_files(tmp_path: Path, kind: type, bits: int):
    folder = make_model(tmp_path / "m", {"torch_dtype": "bfloat16"})
    (folder / "model.safetensors").write_bytes(save({"a.weight": np.zeros((8, 8), kind)}))
    assert card_of(folder).bits == bits


def test_weights_of_a_single_number_are_usable(tmp_path: Path):
    folder = make_model(tmp_path / "m")
    (folder / "model.safetensors").write_bytes(save({"a.beta": np.zeros((), np.float16)}))
    assert card_of(folder).usable
    assert card_of(folder).num_parameters == 1


def test_packed_weights_count_as_unpacked_parameters(tmp_path: Path):
    folder = make_model(tmp_path / "m", {"quantization": {"group_size": 32, "bits": 4}})
    weights = {
        "layer.weight": np.zeros((8, 16), np.uint32),  # 8 x 128 values of 4 bits
        "layer.scales": np.zeros((8, 4), np.float16),
        "layer.biases": np.zeros((8, 4), np.float16),
        "norm.weight": np.zeros(128, np.float16),
        "vision_tower.patch.weight": np.zeros(999, np.float16),
    }
    (folder / "model.safetensors").write_bytes(save(weights))
    card = card_of(folder)
    assert card.num_parameters == 8 * 128 + 128
    assert card.bits == 4


@pytest.mark.parametrize(
    ("config", "bits"),
    [
        ({"quantization": {"bits": 8, "group_size": 64}}, 8),
        ({"quantization_config": {"quant_method": "mxfp4"}}, 4),
        ({"text_config": {"quantization_config": {"bits": 6}}}, 6),
        ({"quantization": {"bits": "four"}}, 16),
        ({"quantization": None}, 16),
        ({"torch_dtype": "float32"}, 32),
        ({"text_config": {"dtype": "bfloat16"}}, 16),
        ({"torch_dtype": 32}, 16),
    ],
)
def test_bits_are_found_in_every_form_of_quantisation_config(
    tmp_path: Path, config: dict[str, object], bits: float
):
    assert card_of(make_model(tmp_path / "m", config)).bits == bits


@pytest.mark.parametrize(
    ("config", "context_len"),
    [
        ({"text_config": {"max_position_embeddings": 262144}}, 262144),
        ({"text_config": {"hidden_size": 8}, "max_position_embeddings": 99}, 99),
        ({"max_position_embeddings": None, "n_positions": 1024}, 1024),
        ({"max_position_embeddings": -1}, 0),
        ({"max_position_embeddings": "many"}, 0),
    ],
)
def test_context_length_is_that_of_the_text_part(
    tmp_path: Path, config: dict[str, object], context_len: int
):
    assert card_of(make_model(tmp_path / "m", config)).context_len == context_len


@pytest.mark.parametrize(
    ("config", "hybrid"),
    [
        ({"text_config": {"full_attention_interval": 4}}, True),
        ({"full_attention_interval": 1}, False),
        ({"layer_types": ["full_attention", "linear_attention"]}, True),
        ({"layer_types": ["full_attention", "sliding_attention"]}, False),
        ({"layer_types": ["conv", "full_attention"], "conv_L_cache": 3}, True),
        ({"model_type": "falcon_h1", "mamba_d_ssm": 64}, True),
        ({"model_type": "mamba2", "conv_kernel": 4}, True),
        ({"model_type": "rwkv7"}, True),
        ({"vision_config": {"conv_bias": True}}, False),
    ],
)
def test_config_with_recurrent_layers_is_hybrid(
    tmp_path: Path, config: dict[str, object], hybrid: bool
):
    assert card_of(make_model(tmp_path / "m", config)).hybrid is hybrid


@pytest.mark.parametrize("part", ["vision_config", "audio_config"])
def test_config_with_images_or_sound_is_marked_text_only(tmp_path: Path, part: str):
    assert card_of(make_model(tmp_path / "m", {part: {"depth": 2}})).text_only


def test_tower_of_too_many_layers_is_refused(tmp_path: Path):
    card = read_card(
        make_model(tmp_path / "m", {"vision_config": {"depth": 10**9}}), ModelSource.FOLDER
    )
    assert card.problem is not None
    assert "depth of config.json is 1,000,000,000" in card.problem.cause


def spoil_json(name: str, text: str) -> Spoil:
    return lambda folder: (folder / name).write_text(text)


def remove(name: str) -> Spoil:
    return lambda folder: (folder / name).unlink()


def cut(name: str, num_bytes: int) -> Spoil:
    def spoil(folder: Path) -> None:
        os.truncate(folder / name, (folder / name).stat().st_size - num_bytes)

    return spoil


SPOILT: list[tuple[Spoil, str]] = [
    (remove("config.json"), "config.json is missing."),
    (
        spoil_json("config.json", '{"model_type": \n'),
        "config.json is broken: line 2 is not valid JSON.",
    ),
    (spoil_json("config.json", " \n"), "config.json is empty."),
    (spoil_json("config.json", "[1]"), "config.json is broken: it holds no settings."),
    (spoil_json("config.json", "[" * 100_000), "config.json is broken: it is not valid JSON."),
    (
        lambda folder: (folder / "config.json").write_bytes(b'{"a": "\xff"}'),
        "config.json is broken: it is not valid JSON.",
    ),
    (
        spoil_json("config.json", "{}"),
        "config.json does not say what kind of model this is: model_type is missing.",
    ),
    (
        spoil_json("config.json", '{"model_type": "gpt9"}'),
        "Rejoinder can’t run models of the kind “gpt9” yet.",
    ),
    (
        remove("model.safetensors"),
        "It has no weights: there is no file named model*.safetensors.",
    ),
    (
        lambda folder: (folder / "model.safetensors").rename(folder / "model.safetensors.part"),
        "The download of its weights is not complete.",
    ),
    (
        cut("model.safetensors", 1),
        "model.safetensors is truncated: 207 bytes of 208 bytes are there.",
    ),
    (
        cut("model.safetensors", 150),
        "model.safetensors is truncated: 58 bytes of 80 bytes are there.",
    ),
    (cut("model.safetensors", 202), "model.safetensors is not a safetensors file."),
    (
        spoil_json("model.safetensors", "version https://git-lfs.github.com/spec/v1\n"),
        "model.safetensors is only a pointer: git lfs pull fetches the file itself.",
    ),
    (spoil_json("model.safetensors", "x" * 100), "model.safetensors is not a safetensors file."),
    (
        lambda folder: (folder / "model.safetensors").write_bytes(
            b"\x08" + b"\0" * 7 + b'{"a": 1}'
        ),
        "model.safetensors is not a safetensors file.",
    ),
    (
        spoil_json("model.safetensors.index.json", '{"weight_map": {"a": "../secret"}}'),
        "model.safetensors.index.json is broken: it names no weight files.",
    ),
    (
        spoil_json("model.safetensors.index.json", "{"),
        "model.safetensors.index.json is broken: line 1 is not valid JSON.",
    ),
    (
        lambda folder: (folder / "model.safetensors").rename(
            folder / "model-00002-of-00003.safetensors"
        ),
        (
            "2 of 3 weight files are missing, for example model-00001-of-00003.safetensors: "
            "the download is not complete."
        ),
    ),
    (remove("tokenizer.json"), "tokenizer.json is missing."),
    (cut("tokenizer.json", 3), "tokenizer.json is truncated."),
    (
        remove("tokenizer_config.json"),
        "It has no chat template, so it can’t chat.",
    ),
    (
        spoil_json("tokenizer_config.json", "{"),
        "tokenizer_config.json is broken: line 1 is not valid JSON.",
    ),
]


@pytest.mark.parametrize(("spoil", "cause"), SPOILT, ids=[cause[:40] for _, cause in SPOILT])
def test_each_fault_of_a_folder_has_its_own_cause(tmp_path: Path, spoil: Spoil, cause: str):
    folder = make_model(tmp_path / "m")
    spoil(folder)
    problem = problem_of(folder)
    assert problem.cause == cause
    assert problem.title == ModelFolderError.title
    assert problem.advice


def test_missing_weight_file_is_named(tmp_path: Path):
    folder = make_model(tmp_path / "m", num_files=4)
    (folder / "model-00003-of-00004.safetensors").unlink()
    card = card_of(folder)
    assert card.problem is not None
    assert card.problem.cause == (
        "1 of 4 weight files are missing, for example model-00003-of-00004.safetensors: "
        "the download is not complete."
    )
    assert card.num_parameters == 3 * 64  # 64 parameters in each of the three files


def test_dangling_link_into_the_cache_counts_as_missing_file(tmp_path: Path):
    snapshot = make_repository(tmp_path, "me/m")
    (snapshot / "model.safetensors").resolve().unlink()
    assert "1 of 1 weight files are missing" in problem_of(snapshot).cause


def test_missing_folder_is_named(tmp_path: Path):
    assert problem_of(tmp_path / "none").cause == f"There is no folder {tmp_path / 'none'}."


@pytest.mark.parametrize(
    ("file", "content", "cause"),
    [
        (
            "config.json",
            {"model_type": "mine", "model_file": "model.py"},
            "Its config.json asks for 'model.py' from the model’s folder.",
        ),
        (
            "config.json",
            {"model_type": "llama", "model_file": ["model.py"]},
            "Its config.json asks for \"['model.py']\" from the model’s folder.",
        ),
        (
            "tokenizer_config.json",
            {"auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", None]}},
            "Its tokenizer_config.json asks for 'tokenization_kimi.TikTokenTokenizer' from the model’s folder.",
        ),
        (
            "tokenizer_config.json",
            {"auto_map": [None, "fast.Tokenizer"], "chat_template": "x"},
            "Its tokenizer_config.json asks for 'fast.Tokenizer' from the model’s folder.",
        ),
    ],
)
def test_folder_that_needs_its_own_code_is_refused(
    tmp_path: Path, file: str, content: dict[str, object], cause: str
):
    folder = make_model(tmp_path / "m")
    write_json(folder / file, content)
    problem = problem_of(folder)
    assert problem.title == UntrustedCodeError.title
    assert problem.cause == cause


def test_folder_with_code_for_other_programs_is_usable(tmp_path: Path):
    assert card_of(make_model(tmp_path / "m", {"auto_map": {"AutoModelForCausalLM": "x.Y"}})).usable


@pytest.mark.parametrize("place", ["jinja", "type", "module"])
def test_chat_template_is_found_in_every_known_place(tmp_path: Path, place: str):
    folder = make_model(tmp_path / "m")
    write_json(folder / "tokenizer_config.json", {})
    match place:
        case "jinja":
            (folder / "chat_template.jinja").write_text("x")
        case "type":
            write_json(folder / "tokenizer_config.json", {"chat_template_type": "deepseek_v32"})
        case _:
            write_json(folder / "config.json", {"model_type": "muse_spark"})
    assert card_of(folder).usable


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "bert", "architectures": ["BertModel"]},
        {
            "model_type": "whisper",
            "architectures": ["WhisperForConditionalGeneration"],
            "is_encoder_decoder": True,
        },
        {"model_type": None, "_class_name": "UNet2DConditionModel", "architectures": None},
    ],
)
def test_model_of_another_kind_is_not_found_as_chat_model(
    tmp_path: Path, config: dict[str, object]
):
    folder = make_model(tmp_path / "m", config)
    assert find_card(folder, ModelSource.FOLDER) is None
    assert problem_of(folder).cause == "It is not a chat model."


def test_fifo_in_place_of_a_file_does_not_block(tmp_path: Path):
    folder = make_model(tmp_path / "m")
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")
    assert problem_of(folder).cause == "config.json is neither a file nor a folder."


def test_stray_files_beside_complete_weights_are_ignored(tmp_path: Path):
    folder = make_model(tmp_path / "m")
    (folder / "model.safetensors.part").touch()
    write_weights(folder / "adapters.safetensors")
    assert card_of(folder).usable


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = st.sampled_from(
    [
        "architectures",
        "auto_map",
        "data_offsets",
        "layer_types",
        "max_position_embeddings",
        "model_file",
        "model_type",
        "quantization",
        "shape",
        "text_config",
        "weight_map",
    ]
)
FILES = st.sampled_from(
    ["config.json", "tokenizer_config.json", "model.safetensors.index.json", "model.safetensors"]
)


@pytest.mark.slow
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(file=FILES, content=st.dictionaries(KEYS, JSON | st.dictionaries(KEYS, JSON), max_size=4))
def test_model_card_is_made_for_any_file_content(
    tmp_path: Path, file: str, content: dict[str, object]
):
    folder = make_model(tmp_path / "m")
    (folder / "model.safetensors.index.json").unlink(missing_ok=True)
    text = json.dumps(content).encode()
    head = len(text).to_bytes(8, "little") if file == "model.safetensors" else b""
    (folder / file).write_bytes(head + text)
    assert card_of(folder).name == "m"
