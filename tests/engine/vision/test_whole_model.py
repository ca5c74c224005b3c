"""The logits of chats with pictures are those of mlx-vlm's own model of the same weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.vision import tower
from tests.architectures.whole_models import difference_from_whole_model
from tests.fakes.seeing_configs import SEEING_NAMES
from tests.fakes.seeing_model import build_seeing
from tests.fakes.tables import rest_in_soak

# Largest difference of the logits, relative to their standard deviation. Text alone differs by 1.6e-4, a
# wrong row or column by more than 1e-2.
TOLERANCE = 5e-4


@pytest.fixture(scope="module", params=SEEING_NAMES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_seeing(tmp_path_factory.mktemp("seeing") / request.param, request.param)


@pytest.mark.parametrize("num_pictures", rest_in_soak([0, 1, 3], 0, 3))
def test_logits_are_those_of_the_whole_model(folder: Path, num_pictures: int) -> None:
    assert difference_from_whole_model(folder, num_pictures) < TOLERANCE


def test_picture_in_parts_gives_the_logits_of_the_whole_model(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tower, "_PART_LEN", 4)
    assert difference_from_whole_model(folder, num_pictures=2) < TOLERANCE
