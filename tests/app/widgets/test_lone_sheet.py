from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from app.theme.palette import Theme
from app.theme.tokens import Type
from app.widgets.lone_sheet import LoneSheet
from tests.conftest import QtBot


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Escape])
def test_sheet_without_a_window_has_the_look_of_the_app_and_closes_with_a_key(
    theme: Theme, qtbot: QtBot, key: Qt.Key
) -> None:
    sheet = LoneSheet(theme, "The folder can’t be used.", "Choose another one.", "Close")
    sheet.add_details("PermissionError")
    sheet.open()
    title = next(
        label for label in sheet.findChildren(QLabel) if label.text() == sheet.windowTitle()
    )

    assert QColor(sheet.grab().toImage().pixel(QPoint(2, 2))).name() == theme.colors.canvas.lower()
    assert title.font().pixelSize() == Type.TITLE.size
    assert sheet.button.property("kind") == "primary"
    QTest.keyClick(sheet, key)
    assert not sheet.isVisible()
