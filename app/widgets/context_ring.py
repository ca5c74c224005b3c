"""The ring in the composer: how much of the model's context the conversation fills. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from app.theme.icons import GRID
from app.theme.palette import Theme
from app.theme.tokens import Space
from app.widgets.icon_button import MAX_ZOOM

_FULL_TURN = 360 * 16  # Qt's angles are in sixteenths of a degree
_TOP = 90 * 16
_NEARLY_FULL = 0.9  # from this share on, the ring has the colour of a warning


class ContextRing(QWidget):
    """A ring that is filled clockwise from the top. It is hidden while the share is not known."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.share = 0.0  # 0 to 1
        theme.changed.connect(self.update)
        theme.zoomed.connect(self._fit)
        self._fit()
        self.hide()

    def show_share(self, share: float | None, tip: str) -> None:
        """Fill the ring up to a share from 0 to 1, or hide it. `tip` says the numbers."""
        self.setVisible(share is not None)
        self.share = 0.0 if share is None else min(1.0, share)
        self.setToolTip(tip)
        self.setAccessibleName(tip)
        self.update()

    def _fit(self) -> None:
        self.setFixedSize(self.sizeHint())
        self.update()

    @override
    def sizeHint(self) -> QSize:
        side = self._theme.scaled(GRID, MAX_ZOOM)
        return QSize(side, side)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        colors = self._theme.colors
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        pen = self._theme.scaled(Space.HAIR, MAX_ZOOM)
        ring = QRectF(self.rect()).adjusted(pen, pen, -pen, -pen)
        painter.setPen(QPen(QColor(colors.track), pen))
        painter.drawEllipse(ring)
        ink = colors.must_read.ink if self.share >= _NEARLY_FULL else colors.secondary
        cap = Qt.PenCapStyle.RoundCap
        painter.setPen(QPen(QColor(ink), pen, Qt.PenStyle.SolidLine, cap))
        painter.drawArc(ring, _TOP, -round(self.share * _FULL_TURN))
