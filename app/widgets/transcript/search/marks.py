"""The scroll bar of the transcript, with marks at the occurrences of the find text.

Used on the main thread only.
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QRect, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from app.theme.palette import Theme
from app.theme.tokens import Space
from app.widgets.hiding_bar import HidingBar


@dataclass(frozen=True, slots=True)
class Marks:
    """The positions of the occurrences in the scroll bar, in pixels from its top."""

    ys: tuple[int, ...] = ()  # sorted y coordinates of all occurrences
    current: int | None = None  # y coordinate of the current occurrence; None if unknown


class MarkedBar(HidingBar):
    """A vertical scroll bar that paints marks over its handle."""

    resized = Signal()  # the height has changed, so the marks must be computed again

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._marks = Marks()
        theme.changed.connect(self.update)

    @property
    def marks(self) -> Marks:
        return self._marks

    @marks.setter
    def marks(self, marks: Marks) -> None:
        if marks != self._marks:
            self._marks = marks
            self.update()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.resized.emit()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self)
        colors, inset = self._theme.colors, Space.HAIR + 1
        ink, last = QColor(colors.must_read.ink), self.height() - Space.HAIR
        for y in self._marks.ys:
            painter.fillRect(inset, min(y, last), self.width() - 2 * inset, Space.HAIR, ink)
        if self._marks.current is not None:
            top = min(self._marks.current, last) - Space.HAIR // 2
            current = QRect(0, top, self.width(), Space.XS)
            # A gap separates the current mark from its neighbours.
            apart = current.adjusted(0, -Space.HAIR, 0, Space.HAIR)
            painter.fillRect(apart, QColor(colors.canvas))
            painter.fillRect(current, QColor(colors.accent))
        painter.end()
