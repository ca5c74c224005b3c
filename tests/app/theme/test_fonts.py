from __future__ import annotations

import pytest
from PySide6.QtGui import QFontDatabase, QFontMetricsF
from PySide6.QtWidgets import QApplication

from app.theme.fonts import FontError, choose_code_family, first_installed, installed_fonts
from app.theme.tokens import Type


def test_first_installed_returns_the_first_family_that_is_installed() -> None:
    assert first_installed(("A", "B", "C"), {"C", "B"}) == "B"
    assert first_installed(("A",), {"B"}) is None


def test_code_family_is_never_proportional() -> None:
    fixed = {"Wide": False, "Mono": True}
    assert choose_code_family(("Absent", "Wide", "Mono"), fixed, fixed.__getitem__) == "Mono"
    with pytest.raises(FontError, match="fixed-pitch"):
        choose_code_family(("Wide",), fixed, fixed.__getitem__)


def test_chosen_families_are_installed_and_code_is_fixed_pitch(qapp: QApplication) -> None:
    fonts = installed_fonts()
    assert fonts.text in QFontDatabase.families()
    metrics = QFontMetricsF(fonts.font(Type.CODE))
    assert metrics.horizontalAdvance("iiii") == metrics.horizontalAdvance("WWWW")


def test_font_sizes_are_pixels_and_scale_with_zoom(qapp: QApplication) -> None:
    fonts = installed_fonts()
    assert fonts.font(Type.BODY).pixelSize() == 15
    assert fonts.font(Type.BODY, zoom=2.0).pixelSize() == 30
    assert fonts.font(Type.H1).weight() == 600
