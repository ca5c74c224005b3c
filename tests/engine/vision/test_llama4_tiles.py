"""Tiles of pictures for Llama 4: how many, and what is in them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from mlx import nn

from engine.chat.pictures import TILE_TOKENS, PictureTokens
from engine.errors import PictureError
from engine.types import Picture
from engine.vision.llama4 import Llama4Tower, tiles_of
from engine.vision.seeing import Vision
from tests.fakes.tiny_model import Template

MARKERS = {one: number for number, one in enumerate(TILE_TOKENS, 5)}
SeeingModel = Callable[[str, Template], Path]


@pytest.mark.parametrize(
    ("width", "height", "max_tiles", "tiles"),
    [
        (300, 200, 3, (1, 2)),  # the example of transformers, whose tiles have 224 pixels
        (224, 224, 16, (1, 1)),
        (100, 100, 16, (1, 1)),
        (1, 10_000, 16, (16, 1)),
        (10_000, 10_000, 16, (4, 4)),
        (1000, 500, 16, (3, 5)),
        (500, 1000, 1, (1, 1)),
    ],
)
def test_tiles_of_a_picture_enlarge_it_as_little_as_possible(
    width: int, height: int, max_tiles: int, tiles: tuple[int, int]
) -> None:
    assert tiles_of(width, height, 224, max_tiles) == tiles


@pytest.fixture
def tower(seeing_model: SeeingModel) -> Llama4Tower:
    folder = seeing_model("llama4", Template.KEEPING)
    config = json.loads((folder / "config.json").read_text())
    return Llama4Tower(folder, config, PictureTokens("", markers=MARKERS))


def test_picture_of_several_tiles_is_also_read_as_a_whole(tower: Llama4Tower) -> None:
    """Tiles have 64 pixels, and 4 tokens."""
    pixels = np.zeros((3, 100, 60), np.uint8)
    pixels[:, 64:] = 255

    found = tower.patches(pixels)

    assert found.grid == (1, 2, 1)
    assert found.values.shape == (3, 64, 64, 3)
    first, second, whole = found.values
    assert (first[:, :60] == -1).all()
    assert (second[:36, :60] == 1).all()
    assert (second[36:] == -1).all()  # padding is black
    assert whole[0, 0, 0] == -1
    assert whole[63, 63, 0] == 1
    assert tower.length(60, 100).num_tokens == 3 * 4 + 2 + 1


def test_small_picture_is_one_tile(tower: Llama4Tower) -> None:
    found = tower.patches(np.zeros((3, 1, 60), np.uint8))

    assert found.values.shape == (1, 64, 64, 3)
    assert tower.length(60, 1).num_tokens == 4 + 1


@pytest.mark.parametrize("wrong", [{"max_patches": 10**9}, {"image_size": 72}, {"patch_size": 5}])
def test_wrong_sizes_of_tiles_are_refused_with_a_sentence(
    seeing_model: SeeingModel, tmp_path: Path, wrong: dict[str, int]
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(seeing_model("llama4", Template.KEEPING), folder)
    config = json.loads((folder / "config.json").read_text())
    config["vision_config"] |= wrong
    (folder / "preprocessor_config.json").write_text(json.dumps(wrong))
    picture = Picture(digest="", width=64, height=64)

    with pytest.raises(PictureError, match="The folder of this model has wrong settings"):
        Vision(nn.Module(), folder, config, PictureTokens("", markers=MARKERS), None).ids(picture)


def test_tokenizer_without_tokens_for_tiles_is_refused(seeing_model: SeeingModel) -> None:
    folder = seeing_model("llama4", Template.KEEPING)
    config = json.loads((folder / "config.json").read_text())
    picture = Picture(digest="", width=64, height=64)

    with pytest.raises(PictureError, match="This model can’t see pictures"):
        Vision(nn.Module(), folder, config, PictureTokens(""), None).ids(picture)
