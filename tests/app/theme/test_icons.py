from __future__ import annotations

from importlib.resources import files

import pytest
from PySide6.QtGui import QColor, QIcon
from PySide6.QtWidgets import QApplication

from app.theme.icons import Icon, Icons, app_icon


def test_every_icon_has_a_file_and_every_file_an_icon() -> None:
    names = {entry.name for entry in (files("resources") / "icons").iterdir()}
    assert names == {f"{icon}.svg" for icon in Icon}


@pytest.mark.parametrize("icon", Icon)
def test_icon_is_painted_in_the_given_colour_only(qapp: QApplication, icon: Icon) -> None:
    image = Icons().pixmap(icon, "#0A60C8", size=36).toImage()
    pixels = [image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height())]
    opaque = [pixel for pixel in pixels if pixel.alpha() == 255]
    assert opaque
    assert all(abs(pixel.red() - 0x0A) + abs(pixel.blue() - 0xC8) <= 2 for pixel in opaque)


def test_icon_files_use_the_18_px_grid_and_1_5_px_stroke() -> None:
    for icon in Icon:
        source = (files("resources") / "icons" / f"{icon}.svg").read_text("utf-8")
        assert 'viewBox="0 0 18 18"' in source
        assert 'stroke-width="1.5"' in source


def test_qicon_has_two_pixel_sizes_and_the_disabled_colour(qapp: QApplication) -> None:
    icon = Icons().icon(Icon.COPY, "#000000", disabled="#999999")
    assert {size.width() for size in icon.availableSizes()} >= {18, 36}
    disabled = icon.pixmap(18, QIcon.Mode.Disabled).toImage()
    colors = {disabled.pixelColor(x, 9).name() for x in range(18)}
    assert QColor("#999999").name() in colors


def test_app_icon_has_all_five_sizes(qapp: QApplication) -> None:
    icon = app_icon()
    assert [size.width() for size in icon.availableSizes()] == [16, 32, 64, 128, 256]
    middle = icon.pixmap(256).toImage().pixelColor(128, 128)
    assert middle.alpha() == 255
    assert icon.pixmap(256).toImage().pixelColor(2, 2).alpha() == 0
