"""For each architecture: mlx-lm's model, written as GGUF and imported, gives the same logits."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
import safetensors.numpy
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import load_model  # pyright: ignore[reportUnknownVariableType]
from numpy.typing import NDArray

from engine.catalog.card import ModelSource
from engine.catalog.scan import Root, scan
from engine.errors import GgufError
from engine.gguf import quants
from engine.gguf.architectures import ARCHITECTURES, plan_model
from engine.gguf.convert import plan_conversion
from engine.gguf.header import Metadata, Value
from engine.gguf.importer import import_into, import_once
from engine.gguf.reader import TensorKind, read_gguf
from tests.fakes.gguf_models import CONFIGS, SCALED, TinyModel, tiny_gguf
from tests.fakes.gguf_writer import WrittenTensor, gguf_bytes, plain_tensor, q8_0
from tests.fakes.tables import rest_in_soak

PROMPT = [5, 17, 60, 61, 62, 200, 41, 9, 100, 150, 33, 12, 12, 77, 250, 3]


def imported(tiny: TinyModel, place: Path) -> Any:
    """Import the model's GGUF file and return the model that mlx-lm loads, in float32."""
    source = place / "tiny.gguf"
    source.write_bytes(tiny.to_bytes())
    import_once(source, place / "model", lambda _: None)
    model: Any = load_model(place / "model")[0]
    model.set_dtype(mx.float32)
    return model


def logits(model: Any) -> NDArray[np.float32]:
    """Return the logits of all positions of PROMPT, with the caches of mlx-lm in two steps."""
    cache = make_prompt_cache(model)
    steps = [model(mx.array([part]), cache=cache) for part in (PROMPT[:10], PROMPT[10:])]
    return np.array(mx.concatenate(steps, axis=1).astype(mx.float32))[0]


def test_configurations_cover_all_architectures():
    assert CONFIGS.keys() == ARCHITECTURES.keys()


@pytest.mark.parametrize("architecture", [*ARCHITECTURES, *SCALED])
def test_imported_model_gives_the_logits_of_the_written_one(tmp_path: Path, architecture: str):
    tiny = tiny_gguf(architecture)
    expected = logits(tiny.model())

    difference = np.abs(logits(imported(tiny, tmp_path)) - expected).max()

    (card,) = scan([Root(tmp_path, ModelSource.FOLDER)])
    assert card.usable
    assert expected.std() > 0.1
    assert difference < 1e-4 * expected.std()


def test_model_in_parts_is_imported_like_one_in_one_file(tmp_path: Path):
    tiny = tiny_gguf("qwen35")
    whole, parts = tmp_path / "whole.gguf", tmp_path / "parts"
    whole.write_bytes(tiny.to_bytes())
    parts.mkdir()
    tensors = tiny.written()
    for index in range(3):
        split = {"split.no": index, "split.count": 3, "split.tensors.count": len(tensors)}
        content = gguf_bytes({**split, **(tiny.metadata if index == 0 else {})}, tensors[index::3])
        (parts / f"tiny-{index + 1:05}-of-00003.gguf").write_bytes(content)
    models = tmp_path / "models"

    folder = import_into(models, parts / "tiny-00002-of-00003.gguf", lambda _: None)

    import_once(whole, tmp_path / "model", lambda _: None)
    assert folder == models / "tiny"
    name = "model.safetensors"
    assert (folder / name).read_bytes() == (tmp_path / "model" / name).read_bytes()
    # The import of another part finds the folder.
    assert import_into(models, parts / "tiny-00001-of-00003.gguf", lambda _: None) == folder


def test_quantised_hybrid_keeps_its_codes_in_reordered_value_heads(tmp_path: Path):
    tiny = tiny_gguf("qwen35")
    exact = tiny_gguf("qwen35")
    tensors: list[WrittenTensor] = []
    for tensor in tiny.written():
        values = tiny.tensors[tensor.name]
        if len(values.shape) == 2 and "conv" not in tensor.name:
            tensor = q8_0(tensor.name, values)
            raw = np.frombuffer(tensor.raw, np.uint8).reshape(len(values), -1)
            exact.tensors[tensor.name] = quants.dequantised(TensorKind.Q8_0, raw)
        tensors.append(tensor)
    source = tmp_path / "quantised.gguf"
    source.write_bytes(gguf_bytes(tiny.metadata, tensors))
    import_once(source, tmp_path / "quantised", lambda _: None)
    (tmp_path / "exact.gguf").write_bytes(exact.to_bytes())
    import_once(tmp_path / "exact.gguf", tmp_path / "exact", lambda _: None)

    weights = load(tmp_path / "quantised")
    expected = load(tmp_path / "exact")

    modules = [name.removesuffix(".scales") for name in weights if name.endswith(".scales")]
    assert len(modules) == 1 + 3 * (3 + 5) + 1 * (3 + 4)
    for module in modules:
        codes = mx.array(weights[f"{module}.weight"])
        scales, biases = (
            mx.array(weights[f"{module}.{part}"].astype(np.float32))
            for part in ("scales", "biases")
        )
        values = np.array(mx.dequantize(codes, scales, biases, 32, 8), np.float32)
        # The unquantised import rounds the values to float16.
        np.testing.assert_allclose(values, expected[f"{module}.weight"], rtol=1e-3, atol=1e-7)


def load(folder: Path) -> dict[str, NDArray[Any]]:
    return safetensors.numpy.load((folder / "model.safetensors").read_bytes())


@pytest.mark.slow
@pytest.mark.parametrize(
    "architecture", rest_in_soak(ARCHITECTURES, "llama", "qwen3next", "gemma3")
)
def test_hostile_numbers_give_a_sentence_or_a_plan(tmp_path: Path, architecture: str):
    """Replace each number of the metadata. Nothing but GgufError may be raised."""
    tiny = tiny_gguf(architecture)
    source = tmp_path / "model.gguf"
    tensors = tiny.written()
    refused = 0
    numbers = [
        key
        for key, value in tiny.metadata.items()
        if key.startswith(f"{architecture}.") and isinstance(value, int | float)
    ]
    for key in numbers:
        for value in (0, 1, 3, 2**32 - 1, float("inf")):
            source.write_bytes(gguf_bytes({**tiny.metadata, key: value}, tensors))
            try:
                plan_conversion(read_gguf(source))
            except GgufError:
                refused += 1
    assert refused > 2 * len(numbers)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_tensors_of_other_shapes_give_a_sentence_or_a_plan(tmp_path: Path, architecture: str):
    tiny = tiny_gguf(architecture)
    source = tmp_path / "model.gguf"
    for index, tensor in enumerate(tiny.written()[:24]):
        tensors = tiny.written()
        tensors[index] = plain_tensor(tensor.name, TensorKind.F32, np.ones((5, 3), np.float32))
        source.write_bytes(gguf_bytes(tiny.metadata, tensors))
        with suppress(GgufError):
            plan_conversion(read_gguf(source))


def changed(architecture: str, **changes: Value) -> str:
    """Return the cause for which a file with changed metadata of the architecture is refused."""
    tiny = tiny_gguf(architecture)
    changes = {f"{architecture}.{key.replace('__', '.')}": it for key, it in changes.items()}
    with pytest.raises(GgufError) as caught:
        plan_model(Metadata(tiny.metadata | changes), tiny.tensors.keys(), lambda _: None)
    return caught.value.problem.cause


def test_settings_that_mlx_lm_cannot_follow_are_refused_with_their_names():
    assert "qwen3.rope.scaling.type is 'yarn'" in changed("qwen3", rope__scaling__type="yarn")
    assert "qwen2.attention.key_length is 8" in changed("qwen2", attention__key_length=8)
    assert "gemma3.final_logit_softcapping is 30.0" in changed(
        "gemma3", final_logit_softcapping=30.0
    )
    assert "has at least 6" in changed("gemma3", block_count=5)
    assert "lfm2.attention.head_count_kv does not fit its 4 layers" in changed(
        "lfm2", attention__head_count_kv=[0, 2, 0]
    )
    assert "Its 6 value heads do not fit its 4 key heads" in changed("qwen35", ssm__group_count=4)
    assert "do not follow each other regularly" in changed(
        "qwen35", attention__recurrent_layers=[True, False, True, True]
    )
    assert "qwen3moe.expert_weights_scale is 2.5" in changed("qwen3moe", expert_weights_scale=2.5)
    assert "It claims 9 draft layers of 4 layers." in changed("qwen35", nextn_predict_layers=9)


def test_draft_layers_of_a_hybrid_are_left_out():
    tiny = tiny_gguf("qwen35")
    metadata = tiny.metadata | {"qwen35.block_count": 5, "qwen35.nextn_predict_layers": 1}
    names = tiny.tensors.keys() | {"blk.4.nextn.eh_proj.weight", "blk.4.attn_q.weight"}

    model = plan_model(Metadata(metadata), names, lambda _: None)

    assert model.config["num_hidden_layers"] == 4
    assert len(model.parts) == len(tiny.tensors)
    assert not any("blk.4." in tensor for part in model.parts for tensor in part.tensors)


def test_factors_of_unknown_rotary_embeddings_are_refused(tmp_path: Path):
    for name, tensor, sentence in (
        ("llama3", "rope_freqs.weight", "rope_freqs.weight are not those of Llama 3"),
        ("phi3_long", "rope_factors_long.weight", "do not fit 8 rotated values"),
    ):
        tiny = tiny_gguf(name)
        for values in (np.full(16, 2.5), np.full(3, 1.0)):
            tiny.tensors[tensor] = values.astype(np.float32)
            source = tmp_path / "model.gguf"
            source.write_bytes(tiny.to_bytes())
            with pytest.raises(GgufError) as caught:
                plan_conversion(read_gguf(source))
            assert sentence in caught.value.problem.cause
