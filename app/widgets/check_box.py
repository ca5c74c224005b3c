"""A check box painted in the theme's colours and sizes."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QCheckBox, QWidget
from typing_extensions import override

from app.theme.icons import Icon
from app.theme.palette import Theme
from app.theme.tokens import Size, Space, Type

_BOX = Space.L
_RADIUS = Space.XS


class CheckBox(QCheckBox):
    """A check box: a square, 16 px at the normal size of text, with a label at its right."""

    def __init__(self, theme: Theme, text: str, parent: QWidget) -> None:
        super().__init__(text, parent)
        self._theme = theme
        theme.changed.connect(self.update)

    @property
    def _scale(self) -> float:
        """The factor of larger text. The window's style sheet scales the font."""
        return max(1.0, self.font().pixelSize() / Type.UI.size)

    @property
    def _side(self) -> int:
        return round(_BOX * self._scale)

    @override
    def sizeHint(self) -> QSize:
        width = self.fontMetrics().horizontalAdvance(self.text())
        height = max(Size.CONTROL, round(Size.CONTROL * self._scale))
        return QSize(self._side + Space.S + width + Space.HAIR, height)

    @override
    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    @override
    def paintEvent(self, e: QPaintEvent) -> None:
        colors, is_on = self._theme.colors, self.isChecked()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(1, (self.height() - self._side) / 2, self._side, self._side)
        edge = colors.accent if is_on or self.hasFocus() else colors.tertiary
        painter.setPen(QPen(QColor(edge), Space.HAIR if self.hasFocus() else 1))
        painter.setBrush(QColor(colors.accent if is_on else colors.canvas))
        inset = 2.5 if is_on and self.hasFocus() else 0.5  # leaves room for the focus ring
        painter.drawRoundedRect(box.adjusted(inset, inset, -inset, -inset), _RADIUS, _RADIUS)
        if is_on:
            self._theme.icons.paint(painter, Icon.CHECK, colors.on_accent, box)
        if is_on and self.hasFocus():
            painter.setPen(QPen(QColor(colors.text), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), _RADIUS, _RADIUS)
        painter.setPen(QColor(colors.text))
        words = self.rect().adjusted(self._side + Space.S, 0, 0, 0)
        painter.drawText(words, Qt.AlignmentFlag.AlignVCenter, self.text())
