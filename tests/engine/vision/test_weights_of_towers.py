"""Vision towers whose weights have other forms or names than those of mlx-vlm's modules."""

# mlx has few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import mlx.core as mx
import pytest
from mlx import nn
from mlx.utils import tree_flatten
from tokenizers import Tokenizer

from engine.chat.pictures import PictureTokens
from engine.models.compare import relative_difference
from engine.types import Picture
from engine.vision.gemma import GemmaTower
from engine.vision.gemma4 import Gemma4Tower
from engine.vision.lfm2 import Lfm2Tower, make_lfm2_tower
from engine.vision.mistral import MistralTower
from engine.vision.pixels import read_pixels
from engine.vision.qwen import QwenTower, make_qwen_tower
from engine.vision.tower import tower_weights
from tests.fakes.seeing_model import build_seeing
from tests.fakes.tiny_model import make_model

COMMON: dict[str, Any] = {"group_size": 32, "bits": 8}


def embedded(folder: Path, picture: Picture, pictures: Path, kind: Any = QwenTower) -> mx.array:
    tower = kind(folder, json.loads((folder / "config.json").read_text()))
    pixels = read_pixels(pictures / f"{picture.digest}.png", picture)
    encoded, _ = tower.encode(tower.patches(pixels))
    mx.eval(encoded.embeddings)  # the weights are read from their file only now
    return encoded.embeddings


def lfm2(folder: Path, config: dict[str, Any]) -> Lfm2Tower:
    mx.random.seed(3)  # the same embeddings of the tokens between tiles
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    markers = {one.content: number for number, one in tokenizer.get_added_tokens_decoder().items()}
    return Lfm2Tower(folder, config, make_model(config), PictureTokens("<image>", markers=markers))


@pytest.mark.parametrize(
    ("name", "kind", "make", "quantised", "fewer_bits"),
    [
        ("qwen3_5", QwenTower, make_qwen_tower, "vision_tower.blocks.", {}),
        (
            "qwen3_5",
            QwenTower,
            make_qwen_tower,
            "vision_tower.blocks.",
            {"vision_tower.blocks.1.mlp.linear_fc1": {"group_size": 32, "bits": 6}},
        ),
        ("lfm2-vl", lfm2, make_lfm2_tower, "vision_tower.", {}),
    ],
)
def test_quantised_tower_gives_nearly_the_same_embeddings(
    tmp_path: Path,
    cat: Picture,
    name: str,
    kind: Any,
    make: Any,
    quantised: str,
    fewer_bits: dict[str, dict[str, int]],
) -> None:
    folder = build_seeing(tmp_path / "model", name)
    plain = embedded(folder, cat, tmp_path / "pictures", kind)
    config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    tower = make(config)
    tower.load_weights(list(tower_weights(folder).items()))

    def settings_of(name: str, layer: nn.Module) -> bool | dict[str, int]:
        is_quantised = name.startswith(quantised) and hasattr(layer, "to_quantized")
        return fewer_bits.get(name, True) if is_quantised else False

    nn.quantize(tower, **COMMON, class_predicate=settings_of)
    named = cast("list[tuple[str, mx.array]]", tree_flatten(tower.parameters()))
    path = folder / "model.safetensors"
    others = {
        name: array
        for name, array in cast("dict[str, mx.array]", mx.load(str(path))).items()
        if not name.startswith("vision_tower.")
    }
    mx.eval(others, tower.parameters())
    weights = others | dict(named)
    mx.save_safetensors(str(path), weights, metadata={"format": "mlx"})
    config["quantization"] = {**COMMON, **fewer_bits}
    (folder / "config.json").write_text(json.dumps(config))

    found = embedded(folder, cat, tmp_path / "pictures", kind)

    assert 0 < relative_difference(found[0], plain[0]) < 0.1


def test_projector_without_a_norm_ignores_its_weights(tmp_path: Path, cat: Picture) -> None:
    folder, pictures = build_seeing(tmp_path / "model", "lfm2-vl"), tmp_path / "pictures"
    with_norm = embedded(folder, cat, pictures, lfm2)
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"projector_use_layernorm": False}))

    assert relative_difference(embedded(folder, cat, pictures, lfm2)[0], with_norm[0]) > 0.1


def mistral(folder: Path, config: dict[str, Any]) -> MistralTower:
    mx.random.seed(3)  # the same embeddings of the tokens that end rows
    return MistralTower(folder, config, make_model(config), (5, 6))


def gemma4(folder: Path, config: dict[str, Any]) -> Gemma4Tower:
    return Gemma4Tower(folder, config, PictureTokens("<|image|>"))


@pytest.mark.parametrize(
    ("name", "kind", "published"),
    [
        ("qwen3_5", QwenTower, ("vision_tower.", "model.visual.")),
        ("gemma3", GemmaTower, ("vision_tower.", "model.vision_tower.")),
        ("gemma4", gemma4, ("embed_vision.", "model.embed_vision.")),
        ("mistral3", mistral, ("vision_tower.vision_model.", "vision_tower.")),
    ],
)
def test_published_names_of_weights_are_known(
    tmp_path: Path, cat: Picture, name: str, kind: Any, published: tuple[str, str]
) -> None:
    folder = build_seeing(tmp_path / "model", name)
    plain = embedded(folder, cat, tmp_path / "pictures", kind)
    path = folder / "model.safetensors"
    weights = cast("dict[str, mx.array]", mx.load(str(path)))
    mx.eval(weights)
    renamed = {one.replace(*published): array for one, array in weights.items()}
    assert renamed.keys() != weights.keys()
    mx.save_safetensors(str(path), renamed, metadata={"format": "mlx"})

    assert mx.array_equal(embedded(folder, cat, tmp_path / "pictures", kind), plain)
