"""A slider that the wheel does not move. Main thread."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QSlider, QWidget
from typing_extensions import override


class Slider(QSlider):
    """A horizontal slider. The wheel scrolls its page, and so changes no value by chance."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)

    @override
    def wheelEvent(self, e: QWheelEvent) -> None:
        e.ignore()
