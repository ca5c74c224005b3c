from __future__ import annotations

import pytest
from PySide6.QtGui import QFontDatabase, QFontMetricsF
from PySide6.QtWidgets import QApplication

from app.theme.fonts import FontError, choose_code_family, first_installed, installed_fonts
from app.theme.tokens import Type


def test_the_first_installed_family_is_taken() -> None:
    assert first_installed(("A", "B", "C"), {"C", "B"}) == "B"
    assert first_installed(("A",), {"B"}) is None


def test_code_is_never_set_in_a_proportional_family() -> None:
    fixed = {"Wide": False, "Mono": True}
    assert choose_code_family(("Absent", "Wide", "Mono"), fixed, fixed.__getitem__) == "Mono"
    with pytest.raises(FontError, match="fixed-pitch"):
        choose_code_family(("Wide",), fixed, fixed.__getitem__)


def test_the_chosen_families_are_installed_and_code_has_one_width(qapp: QApplication) -> None:
    fonts = installed_fonts()
    assert fonts.text in QFontDatabase.families()
    metrics = QFontMetricsF(fonts.font(Type.CODE))
    assert metrics.horizontalAdvance("iiii") == metrics.horizontalAdvance("WWWW")


def test_sizes_are_pixels_and_follow_the_zoom(qapp: QApplication) -> None:
    fonts = installed_fonts()
    assert fonts.font(Type.BODY).pixelSize() == 15
    assert fonts.font(Type.BODY, zoom=2.0).pixelSize() == 30
    assert fonts.font(Type.H1).weight() == 600
