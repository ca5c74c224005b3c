"""A row of the transcript that is one link: an icon and a text. Main thread only."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF
from typing_extensions import override

from app.theme.icons import Icon
from app.theme.tokens import Size, TextStyle
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.row import Hit, Paint, Target, TranscriptRow


@dataclass(frozen=True, slots=True, kw_only=True)
class IconLink:
    """The values of a link row."""

    target: Target
    label: str
    name: str  # for screen readers
    tip: str = ""
    icon: Icon
    icon_size: int  # pixels at a zoom of 1
    gap: int  # pixels at a zoom of 1 between the icon and the label
    style: TextStyle
    elide: Qt.TextElideMode


class IconLinkRow(TranscriptRow):
    """An icon, and a label that is underlined under the pointer and cut if it does not fit."""

    def __init__(self, look: Look, link: IconLink, color: str) -> None:
        """Create the row. `color` is that of the label."""
        self._look = look
        self._link = link
        self._color = color
        self._metrics = QFontMetricsF(look.face(link.style).font)
        self._left = look.px(link.icon_size) + look.px(link.gap)
        self._shown = link.label  # the part that fits

    @property
    def _label_width(self) -> float:
        return self._metrics.horizontalAdvance(self._link.label)

    @override
    def measure(self, width: int) -> int:
        room = max(0, width - self._left)
        self._shown = self._metrics.elidedText(self._link.label, self._link.elide, room)
        return self._look.px(Size.CONTROL_MINI)

    @override
    def paint(self, paint: Paint) -> None:
        look, painter, link = self._look, paint.painter, self._link
        height, size = look.px(Size.CONTROL_MINI), look.px(link.icon_size)
        place = QRectF(0, (height - size) / 2, size, size)
        look.icons.paint(painter, link.icon, look.colors.secondary, place)
        face = look.face(link.style)
        font = QFont(face.font)
        font.setUnderline(paint.hovered == link.target)
        painter.setFont(font)
        painter.setPen(QColor(self._color))
        baseline = (height - face.line) / 2 + face.baseline
        painter.drawText(QPointF(self._left, baseline), self._shown)

    @override
    def hits(self) -> list[Hit]:
        width = self._left + self._metrics.horizontalAdvance(self._shown)
        rect = QRectF(0, 0, width, self._look.px(Size.CONTROL_MINI))
        return [Hit(self._link.target, rect, self._link.name, self._link.tip)]
