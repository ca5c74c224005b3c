"""The outline over the chat while files are dragged over the window. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from app.theme.palette import Theme
from app.theme.tokens import Radius, Space, Type
from app.words import attachments as words


class DropOutline(QWidget):
    """A translucent sheet with an outline and a few words. It ignores the mouse."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()

    def cover(self) -> None:
        """Show the outline over the whole parent."""
        parent = self.parentWidget()
        assert parent is not None
        self.setGeometry(parent.rect())
        self.raise_()
        self.show()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        colors = self._theme.colors
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        veil = QColor(colors.canvas)
        veil.setAlphaF(0.98)  # nothing below may lower the contrast of the outline
        painter.fillRect(self.rect(), veil)
        inset = Space.M
        box = QRectF(self.rect()).adjusted(inset, inset, -inset, -inset)
        painter.setPen(QPen(QColor(colors.accent), Space.HAIR))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(box, Radius.BUBBLE, Radius.BUBBLE)
        painter.setFont(self._theme.zoomed_font(Type.BODY))
        label = QRectF(painter.fontMetrics().boundingRect(words.DROP_HERE))
        label = label.adjusted(-Space.XL, -Space.M, Space.XL, Space.M)
        label.moveCenter(box.center())
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(colors.accent))
        painter.drawRoundedRect(label, label.height() / 2, label.height() / 2)
        painter.setPen(QColor(colors.on_accent))
        painter.drawText(label, Qt.AlignmentFlag.AlignCenter, words.DROP_HERE)
