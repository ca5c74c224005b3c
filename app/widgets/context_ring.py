"""The ring in the composer: how much of the model's context the conversation fills. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from app.theme.palette import Theme
from app.theme.tokens import Space

_FULL_TURN = 360 * 16  # Qt's angles are in sixteenths of a degree
_TOP = 90 * 16
_NEARLY_FULL = 0.9  # from this share on, the ring has the colour of a warning


class ContextRing(QWidget):
    """A ring that is filled clockwise from the top. It is hidden while the share is not known."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.share = 0.0  # 0 to 1
        self.setFixedSize(self.sizeHint())
        theme.changed.connect(self.update)
        self.hide()

    def show_share(self, share: float | None, tip: str) -> None:
        """Fill the ring up to a share from 0 to 1, or hide it. `tip` says the numbers."""
        self.setVisible(share is not None)
        self.share = 0.0 if share is None else min(1.0, share)
        self.setToolTip(tip)
        self.setAccessibleName(tip)
        self.update()

    @override
    def sizeHint(self) -> QSize:
        return QSize(Space.L + Space.HAIR, Space.L + Space.HAIR)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        colors = self._theme.colors
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ring = QRectF(self.rect()).adjusted(2, 2, -2, -2)
        painter.setPen(QPen(QColor(colors.strong_line), Space.HAIR))
        painter.drawEllipse(ring)
        ink = colors.must_read.ink if self.share >= _NEARLY_FULL else colors.secondary
        cap = Qt.PenCapStyle.RoundCap
        painter.setPen(QPen(QColor(ink), Space.HAIR, Qt.PenStyle.SolidLine, cap))
        painter.drawArc(ring, _TOP, -round(self.share * _FULL_TURN))
