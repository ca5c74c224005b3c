"""Tests that the thirty scenes still look like their approved pictures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QApplication

from app.settings import Appearance
from app.theme.palette import Theme
from tests.conformance.approval import APPROVED, PAINTED_WITH, difference, painted_with
from tests.conformance.painting import paint
from tests.conformance.scenes import SCENES

NUM_PICTURES = 30
LARGEST = 20_000  # size limit of a picture file in bytes


@pytest.fixture
def theme(qapp: QApplication) -> Iterator[Theme]:
    theme = Theme(qapp, Appearance.LIGHT)
    yield theme
    theme.set_sharp(False)
    theme.deleteLater()


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_scene_looks_like_its_approved_picture(theme: Theme, tmp_path: Path, name: str) -> None:
    approved_with = PAINTED_WITH.read_text(encoding="utf-8").strip()
    if painted_with(theme) != approved_with:
        pytest.skip(f"approved with {approved_with}; here it is {painted_with(theme)}")
    picture = paint(theme, SCENES[name])
    file = tmp_path / f"{name}.png"
    picture.save(str(file))

    assert not difference(picture, QImage(str(APPROVED / f"{name}.png"))), f"see {file}"


def test_every_scene_has_a_small_approved_picture() -> None:
    files = {file.stem: file.stat().st_size for file in APPROVED.glob("*.png")}

    assert files.keys() == SCENES.keys()
    assert len(files) == NUM_PICTURES
    assert max(files.values()) <= LARGEST


def test_missing_bullet_in_a_picture_is_reported(qapp: QApplication) -> None:
    approved = QImage(str(APPROVED / "lists.png")).convertToFormat(QImage.Format.Format_RGB32)
    picture = approved.copy()
    painter = QPainter(picture)
    painter.fillRect(28, 60, 14, 16, approved.pixelColor(0, 0))
    painter.end()

    assert not difference(approved, approved)
    assert difference(picture, approved)
    assert difference(picture.copy(0, 0, 10, 10), approved)
