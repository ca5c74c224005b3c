"""The tiles of LFM2-VL: the sizes and patches of mlx-vlm's image processor, and settings that are refused."""

# mlx-vlm has few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import importlib
import json
import shutil
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from app.cli.client import load_model
from engine.chat.pictures import PictureTokens
from engine.config import EngineConfig
from engine.errors import PictureError
from engine.events import RequestFailed
from engine.problem import ProblemKind
from engine.types import Picture
from engine.vision.lfm2 import Lfm2Tower
from engine.vision.tiles import TileLayout, TileSettings
from engine.vision.tower_module import import_part
from tests.architectures.whole_models import whole_packages
from tests.fakes.inline_engine import InlineClient
from tests.fakes.seeing_engine import asked, seen, submit
from tests.fakes.tiny_model import Template

PUBLISHED = {
    "do_image_splitting": True,
    "downsample_factor": 2,
    "encoder_patch_size": 16,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
    "max_image_tokens": 256,
    "max_pixels_tolerance": 2.0,
    "max_tiles": 10,
    "min_image_tokens": 64,
    "min_tiles": 2,
    "resample": 2,
    "tile_size": 512,
    "use_thumbnail": True,
}
CONFIG: dict[str, Any] = {
    "vision_config": {"patch_size": 16, "hidden_size": 32},
    "image_token_id": 1,
}
MARKERS = {
    "<|img_thumbnail|>": 200,
    **{
        f"<|img_row_{row}_col_{col}|>": 9 * row + col
        for row in range(1, 11)
        for col in range(1, 11)
    },
}
# Widths and heights in pixels: photos, screens, pages, strips, and a form that lies between two grids.
SIZES = [
    *((1, 1), (20, 700), (500, 20), (512, 512), (640, 480), (700, 750), (724, 724), (725, 725)),
    *((1024, 768), (1280, 1024), (1920, 1080), (3024, 1964), (4032, 3024), (1240, 1754)),
    *((900, 4000), (4000, 900), (6000, 400), (1111, 997), (1000, 800), (2000, 1600)),
]
# The two grids of two tiles are equally near to 5 : 4.
FEW = {**PUBLISHED, "max_tiles": 2}
WHOLE = {**PUBLISHED, "do_image_splitting": False}
NO_WHOLE = {**PUBLISHED, "use_thumbnail": False}


def tower(folder: Path, settings: Mapping[str, object], **processor: object) -> Lfm2Tower:
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    (folder / "processor_config.json").write_text(json.dumps(processor))
    return Lfm2Tower(folder, CONFIG, PictureTokens("<image>", markers=MARKERS))


@cache
def reference() -> Any:
    import_part("base")
    with whole_packages():
        return importlib.import_module("mlx_vlm.models.lfm2_vl.processing_lfm2_vl")


def noise(width: int, height: int) -> np.ndarray:
    return np.random.RandomState(width).randint(0, 256, (height, width, 3), np.uint8)


@pytest.mark.parametrize("settings", [PUBLISHED, FEW, WHOLE, NO_WHOLE])
def test_patches_are_those_of_the_image_processor(
    tmp_path: Path, settings: Mapping[str, object]
) -> None:
    ours = tower(tmp_path, settings)
    processor = reference().Lfm2VlNumpyImageProcessor(**settings)
    for width, height in ((96, 64), (1000, 800), (900, 2000)):
        rows = noise(width, height)
        read = processor([Image.fromarray(rows)])
        found = ours.patches(rows.transpose(2, 0, 1))

        is_patch = read["pixel_attention_mask"].astype(bool)
        assert np.array_equal(found.values, read["pixel_values"][is_patch])
        assert found.grid[:2] == (read["image_rows"][0], read["image_cols"][0])
        assert tuple(32 * one for one in found.grid[2:]) == tuple(read["image_sizes"][0])


@pytest.mark.parametrize("settings", [PUBLISHED, FEW])
def test_layouts_are_those_of_the_image_processor(tmp_path: Path, settings: dict[str, Any]) -> None:
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(settings))
    tiles, theirs = TileSettings.read(tmp_path, CONFIG), reference()
    for width, height in SIZES:
        wanted = (1, 1)
        if theirs._is_image_too_large(height, width, 256, 16, 2, 2.0):
            columns, rows, _, _ = theirs._get_grid_layout(
                height, width, 2, settings["max_tiles"], 512
            )
            wanted = (rows, columns)
        across, down = theirs._smart_resize(height, width, 2, 64, 256, 16)
        assert tiles.layout(width, height) == TileLayout(*wanted, (down // 32, across // 32))


def test_price_is_the_number_of_tokens_between_the_tiles_and_in_them(tmp_path: Path) -> None:
    assert tower(tmp_path, PUBLISHED).length(512, 512).num_tokens == 256
    # 3 x 2 tiles and the whole of 15 x 17 tokens, each after a control token
    assert tower(tmp_path, PUBLISHED).length(3024, 1964).num_tokens == 6 * 257 + 1 + 12 * 19
    assert tower(tmp_path, NO_WHOLE).length(3024, 1964).num_tokens == 6 * 257
    assert tower(tmp_path, WHOLE).length(3024, 1964).num_tokens == 12 * 19
    bare = tower(tmp_path, PUBLISHED, use_image_special_tokens=False)
    assert bare.length(3024, 1964).num_tokens == 6 * 256 + 12 * 19
    assert bare.opening == bare.closing == ""


@pytest.mark.parametrize(
    "change",
    [
        {"tile_size": 0},
        {"tile_size": "512"},
        {"tile_size": 500},
        {"tile_size": 1 << 13},
        {"min_image_tokens": -1},
        {"min_image_tokens": 257},
        {"max_image_tokens": 1 << 15},
        {"min_tiles": 1},
        {"min_tiles": 11},
        {"max_tiles": 11},
        {"max_tiles": 10**9},
        {"encoder_patch_size": 14},
        {"downsample_factor": 4},
    ],
)
def test_wrong_settings_are_refused_with_a_sentence(
    tmp_path: Path, change: dict[str, object]
) -> None:
    with pytest.raises(PictureError) as error:
        tower(tmp_path, {**PUBLISHED, **change})
    assert error.value.problem.cause == "The folder of this model has wrong settings for pictures."


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("vision_config", {"hidden_act": "relu"}),
        ("vision_config", {"num_patches": 250}),
        ("vision_config", {"num_patches": 0}),
        ("", {"projector_hidden_act": "relu"}),
    ],
)
def test_config_that_the_tower_does_not_compute_is_refused(
    tmp_path: Path, part: str, change: dict[str, object]
) -> None:
    config: dict[str, Any] = {**CONFIG, **change}
    if part:
        config = {**CONFIG, part: {**CONFIG[part], **change}}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(PUBLISHED))
    with pytest.raises(PictureError, match="wrong settings for pictures"):
        Lfm2Tower(tmp_path, config, PictureTokens("<image>", markers=MARKERS))


def test_picture_that_is_too_narrow_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(PictureError, match="10,000 by 1 pixels is too narrow"):
        tower(tmp_path, PUBLISHED).length(10000, 1)


def test_folder_without_settings_for_pictures_answers_text_and_refuses_pictures(
    seeing_model: Callable[[str, Template], Path], cat: Picture, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(seeing_model("lfm2-vl", Template.KEEPING), folder)
    (folder / "preprocessor_config.json").unlink()
    config = EngineConfig(use_openblas=False, idle_work=False, picture_folder=tmp_path / "pictures")
    client = InlineClient(config)
    load_model(client, folder, lambda _: None)

    submit(client, [seen("The quick", cat)])
    (failed,) = (e for e in client.run_until_idle() if isinstance(e, RequestFailed))
    asked(client, [seen("The quick")])

    assert failed.problem.kind is ProblemKind.PICTURE
    assert failed.problem.cause == "The folder of this model has no settings for pictures."
