"""A focus ring around a large widget that does not paint one itself. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QRectF, Qt
from PySide6.QtGui import QColor, QFocusEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from app.theme.palette import Theme
from app.theme.tokens import Radius, Space

_BY_KEYS = (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)


class FocusRing(QWidget):
    """A ring painted over its parent while the parent has the focus through Tab, not a click."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._around = parent
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        parent.installEventFilter(self)
        self.hide()

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        match event.type():
            case QEvent.Type.FocusIn if isinstance(event, QFocusEvent):
                self.setVisible(event.reason() in _BY_KEYS)
                self.raise_()
            case QEvent.Type.FocusOut:
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
