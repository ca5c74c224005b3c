"""Vision towers whose weights have other forms or names than those of mlx-vlm's modules."""

# mlx has few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, cast

import mlx.core as mx
import pytest
from mlx import nn
from mlx.utils import tree_flatten
from tokenizers import Tokenizer

from engine.chat.pictures import TILE_TOKENS, PictureTokens
from engine.models.compare import relative_difference
from engine.types import Picture
from engine.vision import tower
from engine.vision.gemma3n import make_gemma3n_tower
from engine.vision.lfm2 import make_lfm2_tower
from engine.vision.pixels import read_pixels
from engine.vision.qwen import make_qwen_tower
from engine.vision.seeing import TOWERS
from engine.vision.tower import Tower
from engine.vision.tower_module import import_part, tower_weights
from tests.fakes.seeing_model import build_seeing

COMMON: dict[str, Any] = {"group_size": 32, "bits": 8}


def embedded(folder: Path, picture: Picture, pictures: Path) -> mx.array:
    its_tower = tower_of(folder, json.loads((folder / "config.json").read_text()))
    pixels = read_pixels(pictures / f"{picture.digest}.png", picture)
    encoded, _ = its_tower.encode(its_tower.patches(pixels))
    mx.eval(encoded.embeddings)  # the weights are read from their file only now
    return encoded.embeddings


def tower_of(folder: Path, config: dict[str, Any]) -> Tower:
    """Return a tower. Numbers of control tokens that the tokenizer lacks are made up."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    markers = {one: number for number, one in enumerate(TILE_TOKENS, 7)}
    markers |= {one.content: number for number, one in tokenizer.get_added_tokens_decoder().items()}
    tokens = PictureTokens("", row_end=5, picture_end=6, markers=markers)
    return TOWERS[config["model_type"]](folder, config, tokens)


@pytest.mark.parametrize(
    ("name", "make", "quantised", "fewer_bits"),
    [
        ("qwen3_5", make_qwen_tower, "vision_tower.blocks.", {}),
        (
            "qwen3_5",
            make_qwen_tower,
            "vision_tower.blocks.",
            {"vision_tower.blocks.1.mlp.linear_fc1": {"group_size": 32, "bits": 6}},
        ),
        ("lfm2-vl", make_lfm2_tower, "vision_tower.", {}),
    ],
)
def test_quantised_tower_gives_nearly_the_same_embeddings(
    tmp_path: Path,
    cat: Picture,
    name: str,
    make: Any,
    quantised: str,
    fewer_bits: dict[str, dict[str, int]],
) -> None:
    folder = build_seeing(tmp_path / "model", name)
    plain = embedded(folder, cat, tmp_path / "pictures")
    config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    original = make(config)
    original.load_weights(list(tower_weights(folder).items()))

    def settings_of(name: str, layer: nn.Module) -> bool | dict[str, int]:
        is_quantised = name.startswith(quantised) and hasattr(layer, "to_quantized")
        return fewer_bits.get(name, True) if is_quantised else False

    nn.quantize(original, **COMMON, class_predicate=settings_of)
    named = cast("list[tuple[str, mx.array]]", tree_flatten(original.parameters()))
    path = folder / "model.safetensors"
    others = {
        name: array
        for name, array in cast("dict[str, mx.array]", mx.load(str(path))).items()
        if not name.startswith("vision_tower.")
    }
    mx.eval(others, original.parameters())
    weights = others | dict(named)
    mx.save_safetensors(str(path), weights, metadata={"format": "mlx"})
    config["quantization"] = {**COMMON, **fewer_bits}
    (folder / "config.json").write_text(json.dumps(config))

    found = embedded(folder, cat, tmp_path / "pictures")

    assert 0 < relative_difference(found[0], plain[0]) < 0.1


def test_projector_without_a_norm_ignores_its_weights(tmp_path: Path, cat: Picture) -> None:
    folder, pictures = build_seeing(tmp_path / "model", "lfm2-vl"), tmp_path / "pictures"
    with_norm = embedded(folder, cat, pictures)
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"projector_use_layernorm": False}))

    assert relative_difference(embedded(folder, cat, pictures)[0], with_norm[0]) > 0.1


@pytest.mark.parametrize("name", ["qwen3_5", "qwen2_vl", "qwen2_5_vl"])
def test_attention_in_small_blocks_gives_the_same_embeddings(
    tmp_path: Path, cat: Picture, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = build_seeing(tmp_path / "model", name)
    plain = embedded(folder, cat, tmp_path / "pictures")

    # Qwen2.5-VL: the four windows of this picture have 64 to 8 patches, and 2 heads.
    monkeypatch.setattr(tower, "_MAX_SCORES_CPU", 1000)
    in_blocks = embedded(folder, cat, tmp_path / "pictures")

    assert relative_difference(in_blocks[0], plain[0]) < 1e-5


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("qwen3_5", ("vision_tower.", "model.visual.")),
        ("qwen2_vl", ("vision_tower.", "visual.")),
        ("qwen2_5_vl", ("vision_tower.", "model.visual.")),
        ("gemma3", ("vision_tower.", "model.vision_tower.")),
        ("gemma4", ("embed_vision.", "model.embed_vision.")),
        ("llama4", ("vision_model.", "model.vision_model.")),
        ("mistral3", ("vision_tower.vision_model.", "vision_tower.")),
    ],
)
def test_published_names_of_weights_are_known(
    tmp_path: Path, cat: Picture, name: str, published: tuple[str, str]
) -> None:
    folder = build_seeing(tmp_path / "model", name)
    plain = embedded(folder, cat, tmp_path / "pictures")
    path = folder / "model.safetensors"
    weights = cast("dict[str, mx.array]", mx.load(str(path)))
    mx.eval(weights)
    renamed = {one.replace(*published): array for one, array in weights.items()}
    assert renamed.keys() != weights.keys()
    mx.save_safetensors(str(path), renamed, metadata={"format": "mlx"})

    assert mx.array_equal(embedded(folder, cat, tmp_path / "pictures"), plain)


@pytest.mark.parametrize("name", ["qwen2_vl", "qwen2_5_vl", "gemma3n"])
def test_kernels_in_the_order_of_torch_are_known(tmp_path: Path, cat: Picture, name: str) -> None:
    """torch's order is: results, channels, then places. MLX has the channels last."""
    folder = build_seeing(tmp_path / "model", name)
    plain = embedded(folder, cat, tmp_path / "pictures")
    path = folder / "model.safetensors"
    weights = cast("dict[str, mx.array]", mx.load(str(path)))
    mx.eval(weights)
    kernels = {key: array for key, array in weights.items() if array.ndim >= 4}
    turned = {key: mx.contiguous(mx.moveaxis(array, -1, 1)) for key, array in kernels.items()}
    assert turned
    mx.save_safetensors(str(path), weights | turned, metadata={"format": "mlx"})

    assert mx.array_equal(embedded(folder, cat, tmp_path / "pictures"), plain)


def test_published_tower_of_gemma3n_has_the_weights_of_mlx_vlm() -> None:
    vision = {"architecture": "mobilenetv5_300m_enc", "hidden_size": 2048, "vocab_size": 128}
    config = {
        "vision_config": vision | {"vocab_offset": 262144},
        "text_config": {"hidden_size": 2048},
        "eoi_token_id": 262144,
    }
    theirs = import_part("gemma3n.vision").VisionModel(import_part("gemma3n.config").VisionConfig())

    ours: Any = make_gemma3n_tower(config)

    assert shapes(ours.vision_tower) == shapes(theirs)
    assert sum(math.prod(shape) for shape in shapes(theirs).values()) > 290e6


def shapes(module: nn.Module) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a module's weights, which are not computed."""
    named = cast("list[tuple[str, mx.array]]", tree_flatten(module.parameters()))
    return {name: array.shape for name, array in named}
