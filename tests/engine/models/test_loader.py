"""Loading of model folders: a model, or an error that names the cause."""

from __future__ import annotations

import json
from pathlib import Path

import mlx.core as mx
import pytest

from engine.config import EngineConfig
from engine.errors import ModelFolderError
from engine.models.loader import load_model, namespace_of
from tests.architectures.configs.every import CONFIGS
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.tiny_model import Template, build_tiny


def no_progress(_: int, __: int) -> None:
    pass


@pytest.mark.parametrize("kv_bits", [4, 8])
def test_layout_with_quantised_kv_has_fewer_bytes_per_token(tmp_path: Path, kv_bits: int) -> None:
    folder = build_tiny("qwen3_5", tmp_path, Template.KEEPING, CONFIGS)
    plain = load_model(folder, no_progress).layout
    quantised = load_model(folder, no_progress, kv_bits=kv_bits).layout

    # A float32 value of 4 bytes becomes kv_bits bits, plus a 4-byte scale and a 4-byte bias for
    # every 32 values.
    share = (kv_bits / 8 + 2 * 4 / 32) / 4
    assert quantised.kv_bytes_per_token == plain.kv_bytes_per_token * share
    assert quantised.snapshot_bytes == plain.snapshot_bytes


def test_namespace_differs_by_kv_quantisation(tiny_model: TinyModel) -> None:
    folder = tiny_model("llama", Template.KEEPING)
    kinds = (None, 4, 8)

    assert len({namespace_of(folder, kv_bits) for kv_bits in kinds}) == len(kinds)
    assert namespace_of(folder, EngineConfig().kv_bits) == namespace_of(folder, None)


def test_config_that_only_mlx_lm_supports_is_loaded(tmp_path: Path) -> None:
    # transformers reads the tokenizer, but does not support the layer types of this model's config.
    folder = build_tiny("gear", tmp_path, Template.KEEPING, CONFIGS)
    model = load_model(folder, no_progress)

    assert model.prompts.tokenizer.markers.eos_ids


def test_broken_tokenizer_is_named_in_the_error(tiny_model: TinyModel, tmp_path: Path) -> None:
    source = tiny_model("llama", Template.KEEPING)
    for file in source.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {}}), encoding="utf-8")

    with pytest.raises(ModelFolderError, match="tokenizer"):
        load_model(tmp_path, no_progress)


@pytest.mark.skipif(mx.metal.is_available(), reason="this is such a GPU")
def test_model_that_needs_a_gpu_is_refused_without_one(tmp_path: Path) -> None:
    folder = build_tiny("bitnet", tmp_path, Template.KEEPING, CONFIGS)

    with pytest.raises(ModelFolderError, match="only on a Mac’s GPU"):
        load_model(folder, no_progress)
