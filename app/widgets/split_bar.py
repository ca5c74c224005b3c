"""A bar that shows which Mac holds which part of a model."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget
from typing_extensions import override

from app.theme.palette import Theme
from app.theme.tokens import Radius, Size, Space, Type
from app.viewmodels.several import Part
from app.words import several as words

_HEIGHT = 48  # px: two lines of text
_GAP = 2.0  # px between two parts


class SplitBar(QWidget):
    """One bar with a part for each Mac, in the order of the layers."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._parts: tuple[Part, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)
        theme.zoomed.connect(self.updateGeometry)

    def show_parts(self, parts: tuple[Part, ...]) -> None:
        self._parts = parts
        spoken = ", ".join(f"{part.name} {part.text}" for part in parts)
        self.setAccessibleName(words.split_name(spoken))
        self.setToolTip(spoken)
        self.update()

    @override
    def sizeHint(self) -> QSize:
        return QSize(Size.INSPECTOR, self._theme.scaled(_HEIGHT))

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._theme.zoomed_font(Type.UI))
        whole = QRectF(self.rect())
        outline = QPainterPath()
        outline.addRoundedRect(whole, Radius.ROW, Radius.ROW)
        painter.setClipPath(outline)
        total = sum(part.size for part in self._parts) or 1
        room = whole.width() - _GAP * (len(self._parts) - 1)
        left = 0.0
        colors = self._theme.colors
        inks = (colors.on_disk, colors.instant, colors.must_read)
        for number, part in enumerate(self._parts):
            width = room * part.size / total
            ink = inks[number % len(inks)]
            place = QRectF(left, 0, width, whole.height())
            painter.fillRect(place, QColor(ink.tint))
            self._write(
                painter, part, place.adjusted(Space.S, Space.XS, -Space.S, -Space.XS), ink.ink
            )
            left += width + _GAP

    def _write(self, painter: QPainter, part: Part, place: QRectF, color: str) -> None:
        painter.setPen(QColor(color))
        metrics = painter.fontMetrics()
        right = Qt.TextElideMode.ElideRight
        for text, side in (
            (part.name, Qt.AlignmentFlag.AlignTop),
            (part.text, Qt.AlignmentFlag.AlignBottom),
        ):
            shown = metrics.elidedText(text, right, round(place.width()))
            painter.drawText(place, side | Qt.AlignmentFlag.AlignLeft, shown)
