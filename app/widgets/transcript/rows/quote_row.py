"""The row below an answer that names a document with words of the answer. Main thread only."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF
from typing_extensions import override

from app.conversation.quotes import QuotedFile
from app.theme.icons import Icon
from app.theme.tokens import Size, Space, Type
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.row import Hit, Paint, RowAction, Target, TranscriptRow
from app.words import attachments as words

_ICON = 14


class QuoteRow(TranscriptRow):
    """An icon and a link that opens the document at the first passage."""

    def __init__(self, look: Look, place: int, file: QuotedFile) -> None:
        self._look = look
        self._file = file
        self._target = Target(RowAction.OPEN_QUOTE, str(place))
        self._metrics = QFontMetricsF(look.face(Type.SMALL).font)
        self._label = words.quotes(file.name, file.num_passages)
        self._shown = self._label  # the part that fits

    @property
    def _left(self) -> int:
        return self._look.px(_ICON) + self._look.px(Space.XS)

    @override
    def measure(self, width: int) -> int:
        middle = Qt.TextElideMode.ElideMiddle
        self._shown = self._metrics.elidedText(self._label, middle, max(0, width - self._left))
        return self._look.px(Size.CONTROL_MINI)

    @override
    def paint(self, paint: Paint) -> None:
        look, painter, height = self._look, paint.painter, self._look.px(Size.CONTROL_MINI)
        size = look.px(_ICON)
        icon = QRectF(0, (height - size) / 2, size, size)
        look.icons.paint(painter, Icon.FILE, look.colors.secondary, icon)
        face = look.face(Type.SMALL)
        font = QFont(face.font)
        font.setUnderline(paint.hovered == self._target)
        painter.setFont(font)
        painter.setPen(QColor(look.colors.secondary))
        baseline = (height - face.line) / 2 + face.baseline
        painter.drawText(QPointF(self._left, baseline), self._shown)

    @override
    def hits(self) -> list[Hit]:
        width = self._left + self._metrics.horizontalAdvance(self._shown)
        rect = QRectF(0, 0, width, self._look.px(Size.CONTROL_MINI))
        name = words.quotes_spoken(self._file.name, self._file.num_passages)
        tip = f"{self._file.name}\n{words.QUOTE_TIP}"
        return [Hit(self._target, rect, name, tip)]
