from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.settings import Appearance
from app.theme.palette import Theme
from app.theme.tokens import DARK, LIGHT


@pytest.fixture
def theme(qapp: QApplication) -> Iterator[Theme]:
    theme = Theme(qapp, Appearance.LIGHT)
    yield theme
    theme.set_appearance(Appearance.SYSTEM)
    theme.deleteLater()


def painted(widget: QWidget) -> QColor:
    return widget.grab().toImage().pixelColor(3, 3)


def test_set_appearance_repaints_widgets_at_once(theme: Theme, qtbot: QtBot) -> None:
    widget = QWidget()
    qtbot.addWidget(widget)
    widget.show()
    assert theme.colors is LIGHT
    assert painted(widget) == QColor(LIGHT.canvas)
    with qtbot.waitSignal(theme.changed):
        theme.set_appearance(Appearance.DARK)
    assert theme.colors is DARK
    assert theme.is_dark
    assert painted(widget) == QColor(DARK.canvas)
    theme.set_appearance(Appearance.LIGHT)
    assert painted(widget) == QColor(LIGHT.canvas)


def test_changed_is_emitted_only_if_the_colours_change(theme: Theme, qtbot: QtBot) -> None:
    with qtbot.assertNotEmitted(theme.changed):
        theme.set_appearance(Appearance.LIGHT)
    with qtbot.waitSignal(theme.changed):
        theme.set_appearance(Appearance.DARK)
    assert theme.is_dark


def test_system_appearance_follows_the_system_colour_scheme(
    theme: Theme, qapp: QApplication
) -> None:
    theme.set_appearance(Appearance.SYSTEM)
    system_is_dark = qapp.styleHints().colorScheme() is Qt.ColorScheme.Dark
    assert theme.is_dark == system_is_dark


def test_style_sheet_has_no_colour_of_the_other_appearance(
    theme: Theme, qapp: QApplication
) -> None:
    theme.set_appearance(Appearance.DARK)
    assert LIGHT.sidebar not in qapp.styleSheet()
    assert DARK.raised in qapp.styleSheet()
    theme.set_appearance(Appearance.LIGHT)
    assert DARK.raised not in qapp.styleSheet()
