"""Settings of image processors that are wrong, or missing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mlx import nn

from engine.catalog.model_config import parse_config
from engine.chat.pictures import PictureTokens
from engine.errors import PictureError
from engine.types import Picture
from engine.vision.seeing import Vision
from tests.fakes.tiny_model import Template

SeeingModel = Callable[[str, Template], Path]


def vision_of(folder: Path) -> Vision:
    config = json.loads((folder / "config.json").read_text())
    return Vision(nn.Module(), folder, config, PictureTokens(""), None)


@pytest.fixture
def folder(seeing_model: SeeingModel, tmp_path: Path) -> Path:
    copy = tmp_path / "model"
    shutil.copytree(seeing_model("qwen2_5_vl", Template.KEEPING), copy)
    return copy


@pytest.mark.parametrize(
    "wrong",
    [
        {"patch_size": 0},
        {"patch_size": 16},
        {"merge_size": 1},
        {"max_pixels": 0},
        {"min_pixels": "many"},
        {"image_mean": [0.5]},
        {"image_std": [0.5, 0.5, 0]},
        "no settings",
    ],
)
def test_wrong_settings_of_an_image_processor_are_refused_with_a_sentence(
    folder: Path, cat: Picture, wrong: Any
) -> None:
    path = folder / "preprocessor_config.json"
    if isinstance(wrong, dict):
        path.write_text(json.dumps(json.loads(path.read_text()) | wrong))
    else:
        path.write_text(json.dumps(wrong))

    with pytest.raises(PictureError, match="The folder of this model has wrong settings"):
        vision_of(folder).ids(cat)


def test_missing_settings_of_an_image_processor_are_those_of_transformers(
    folder: Path, cat: Picture
) -> None:
    """The defaults have other limits of sizes: 4 to 1,280 tokens."""
    (folder / "preprocessor_config.json").unlink()

    assert vision_of(folder).num_tokens(cat.width, cat.height) == 35
    assert vision_of(folder).num_tokens(20, 20) == 4
    assert 1200 < vision_of(folder).num_tokens(4000, 3000) <= 1280


def test_smallest_pictures_that_take_too_many_tokens_are_refused(
    folder: Path, cat: Picture
) -> None:
    path = folder / "preprocessor_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"min_pixels": 10**12}))

    with pytest.raises(PictureError, match="A picture takes"):
        vision_of(folder).ids(cat)


@pytest.mark.parametrize(
    "scaling",
    [
        {"type": "mrope", "mrope_section": [8, 4, 4], "mrope_interleaved": True},
        {"type": "yarn", "factor": 4, "mrope_section": [8, 4, 4]},
        {"type": "mrope", "mrope_section": [8, 4, 3]},
        {"type": "mrope", "mrope_section": [20, 0, -4]},
        {"type": "mrope", "mrope_section": [8, 8]},
        None,
    ],
)
def test_model_with_other_positions_does_not_see(folder: Path, scaling: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    assert parse_config(config).sees

    config["text_config"]["rope_scaling"] = scaling

    assert not parse_config(config).sees


@pytest.mark.parametrize(
    "wrong",
    [
        {"vision_config": {"architecture": "mobilenetv6"}},
        {"vision_config": {"vocab_offset": 1}},
        {"vision_soft_tokens_per_image": 10},
        {"eoi_token_id": None},
    ],
)
def test_gemma3n_with_another_network_or_tokens_does_not_see(
    seeing_model: SeeingModel, cat: Picture, wrong: dict[str, Any]
) -> None:
    folder = seeing_model("gemma3n", Template.KEEPING)
    config = json.loads((folder / "config.json").read_text())
    vision = config["vision_config"] | wrong.get("vision_config", {})
    config |= wrong | {"vision_config": vision}

    with pytest.raises(PictureError, match="This model can’t see pictures"):
        Vision(nn.Module(), folder, config, PictureTokens(""), None).ids(cat)
