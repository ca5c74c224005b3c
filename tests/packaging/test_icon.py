"""Tests of the icon file: a picture for each size, with transparent corners."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtGui import QImage

from appbundle.icon import write_icns

ROOT = Path(__file__).parents[2]
# Key: type of an entry in the icon file. Value: width of its picture in pixels.
PIXELS = {
    "ic11": 32,
    "ic12": 64,
    "ic07": 128,
    "ic13": 256,
    "ic08": 256,
    "ic14": 512,
    "ic09": 512,
    "ic10": 1024,
}


def read(icns: bytes) -> dict[str, QImage]:
    assert icns[:4] == b"icns"
    assert int.from_bytes(icns[4:8], "big") == len(icns)
    found: dict[str, QImage] = {}
    at = 8
    while at < len(icns):
        length = int.from_bytes(icns[at + 4 : at + 8], "big")
        assert icns[at + 8 : at + 12] == b"\x89PNG"
        found[icns[at : at + 4].decode()] = QImage.fromData(icns[at + 8 : at + length])
        at += length
    return found


def test_icon_file_has_a_picture_of_every_size(tmp_path: Path) -> None:
    write_icns(ROOT / "resources" / "app-icon.svg", tmp_path / "AppIcon.icns")
    pictures = read((tmp_path / "AppIcon.icns").read_bytes())
    assert {name: picture.width() for name, picture in pictures.items()} == PIXELS
    for picture in pictures.values():
        size = picture.width()
        assert picture.height() == size
        assert picture.pixelColor(0, 0).alpha() == 0
        # The centre of the picture has the background colour, and to its right is a circle.
        assert picture.pixelColor(size // 2, size // 2).name() == "#1b1b1d"
        assert picture.pixelColor(size * 3 // 4, size // 2).name() == "#4cc9a0"


@pytest.mark.qt_log_ignore("Cannot read file")
def test_icon_from_an_empty_svg_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.svg").touch()
    with pytest.raises(ValueError, match=r"empty\.svg"):
        write_icns(tmp_path / "empty.svg", tmp_path / "AppIcon.icns")
