"""The row that stands for the documents of a folder in a user's message. Main thread only."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF
from typing_extensions import override

from app.theme.icons import Icon
from app.theme.tokens import Size, Space, Type
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.row import Hit, Paint, RowAction, Target, TranscriptRow
from app.words import folder_documents as words

_ICON = 16
_TARGET = Target(RowAction.TOGGLE_DOCUMENTS)


class DocumentsRow(TranscriptRow):
    """An arrow and a link that shows or hides the rows of the documents."""

    def __init__(self, look: Look, count: int, folder: str, *, is_open: bool) -> None:
        self._look = look
        self._label = words.of_folder(count, folder)
        self._is_open = is_open
        self._metrics = QFontMetricsF(look.face(Type.UI).font)
        self._shown = self._label  # the part that fits
        self.natural_width = self._left + self._metrics.horizontalAdvance(self._label) + 2

    @property
    def _left(self) -> int:
        return self._look.px(_ICON) + self._look.px(Space.S)

    @override
    def measure(self, width: int) -> int:
        right = Qt.TextElideMode.ElideRight
        self._shown = self._metrics.elidedText(self._label, right, max(0, width - self._left))
        return self._look.px(Size.CONTROL_MINI)

    @override
    def paint(self, paint: Paint) -> None:
        look, painter, height = self._look, paint.painter, self._look.px(Size.CONTROL_MINI)
        size = look.px(_ICON)
        icon = Icon.CHEVRON_DOWN_SMALL if self._is_open else Icon.CHEVRON_RIGHT_SMALL
        place = QRectF(0, (height - size) / 2, size, size)
        look.icons.paint(painter, icon, look.colors.secondary, place)
        face = look.face(Type.UI)
        font = QFont(face.font)
        font.setUnderline(paint.hovered == _TARGET)
        painter.setFont(font)
        painter.setPen(QColor(look.colors.text))
        baseline = (height - face.line) / 2 + face.baseline
        painter.drawText(QPointF(self._left, baseline), self._shown)

    @override
    def hits(self) -> list[Hit]:
        width = self._left + self._metrics.horizontalAdvance(self._shown)
        rect = QRectF(0, 0, width, self._look.px(Size.CONTROL_MINI))
        name = words.spoken_row(self._label, is_open=self._is_open)
        return [Hit(_TARGET, rect, name)]
