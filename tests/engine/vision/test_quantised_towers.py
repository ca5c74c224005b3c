"""Vision towers with quantised layers give nearly the embeddings of the layers that they stand for."""

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

from engine.models.compare import relative_difference
from engine.types import Picture
from engine.vision.pixels import read_pixels
from engine.vision.tower import QwenTower, make_tower, tower_weights
from tests.fakes.seeing_model import build_seeing

COMMON: dict[str, Any] = {"group_size": 32, "bits": 8}


def embedded(folder: Path, picture: Picture, pictures: Path) -> mx.array:
    tower = QwenTower(folder, json.loads((folder / "config.json").read_text()))
    pixels = read_pixels(pictures / f"{picture.digest}.png", picture)
    encoded, _ = tower.encode(tower.patches(pixels))
    mx.eval(encoded.embeddings)  # the weights are read from their file only now
    return encoded.embeddings


@pytest.mark.parametrize(
    "fewer_bits", [{}, {"blocks.1.mlp.linear_fc1": {"group_size": 32, "bits": 6}}]
)
def test_quantised_tower_gives_nearly_the_same_embeddings(
    tmp_path: Path, cat: Picture, fewer_bits: dict[str, dict[str, int]]
) -> None:
    folder = build_seeing(tmp_path / "model")
    plain = embedded(folder, cat, tmp_path / "pictures")
    config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    tower = make_tower(config)
    tower.load_weights(list(tower_weights(folder).items()))

    def settings_of(name: str, layer: nn.Module) -> bool | dict[str, int]:
        is_quantised = name.startswith("blocks.") and hasattr(layer, "to_quantized")
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
    weights = others | {f"vision_tower.{name}": array for name, array in named}
    mx.save_safetensors(str(path), weights, metadata={"format": "mlx"})
    own = {f"vision_tower.{name}": settings for name, settings in fewer_bits.items()}
    config["quantization"] = {**COMMON, **own}
    (folder / "config.json").write_text(json.dumps(config))

    quantised = embedded(folder, cat, tmp_path / "pictures")

    assert 0 < relative_difference(quantised[0], plain[0]) < 0.1
