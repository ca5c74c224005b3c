"""The memory that a picture takes, against the plan that a request is admitted by."""

# mlx has few type annotations.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import mlx.core as mx
import pytest

from engine.cache.trees import evaluate
from engine.models.loader import load_model
from tests.fakes.seeing_configs import SEEING_NAMES
from tests.fakes.seeing_model import write_picture
from tests.fakes.tiny_model import Template


@pytest.mark.parametrize("kind", SEEING_NAMES)
def test_peak_memory_of_a_picture_is_within_its_plan(
    seeing_model: Callable[[str, Template], Path], tmp_path: Path, kind: str
) -> None:
    pictures = tmp_path / "pictures"
    picture = write_picture(pictures, 640, 480)
    folder = seeing_model(kind, Template.KEEPING)
    vision = load_model(folder, lambda _done, _total: None, picture_folder=pictures).vision
    assert vision is not None
    ids = vision.ids(picture)
    before = mx.get_active_memory()
    mx.reset_peak_memory()
    parts = vision.encode(ids)
    assert parts
    for part in parts:
        evaluate([part])
    planned = vision.weight_bytes + vision.pass_bytes(len(ids))
    # A twentieth more or less depends on the order in which MLX frees arrays.
    assert mx.get_peak_memory() - before < 1.1 * planned
