from __future__ import annotations

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.widgets.slider import Slider


def test_wheel_does_not_move_a_slider_and_keys_do(qtbot: QtBot) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    slider = Slider(parent)
    parent.show()
    event = QWheelEvent(
        QPointF(5, 5),
        QPointF(5, 5),
        QPoint(),
        QPoint(0, 120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )

    QApplication.sendEvent(slider, event)
    assert slider.value() == 0

    QTest.keyClick(slider, Qt.Key.Key_Right)
    assert slider.value() == 1
