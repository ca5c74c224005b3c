"""A focus ring around a scroll area that does not paint one itself. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QRectF, Qt
from PySide6.QtGui import QColor, QFocusEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractScrollArea, QWidget
from typing_extensions import override

from app.theme.palette import Theme
from app.theme.tokens import Radius, Space

# reasons with which a key moves the focus into a widget
BY_KEYS = (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)


class FocusRing(QWidget):
    """A ring over a scroll area that has the focus through Tab. A click removes the ring."""

    def __init__(self, theme: Theme, parent: QAbstractScrollArea) -> None:
        super().__init__(parent)
        self._theme = theme
        self._around = parent
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        parent.installEventFilter(self)
        parent.viewport().installEventFilter(self)  # clicks go to the viewport
        self.hide()

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        match event.type():
            case QEvent.Type.FocusIn if isinstance(event, QFocusEvent):
                self.setVisible(event.reason() in BY_KEYS)
                self.raise_()
            case QEvent.Type.FocusOut | QEvent.Type.MouseButtonPress:
                self.hide()
            case QEvent.Type.Resize:
                self.setGeometry(self._around.rect())
            case _:
                pass
        return False

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(self._theme.colors.accent), Space.HAIR))
        ring = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        painter.drawRoundedRect(ring, Radius.ROW, Radius.ROW)
