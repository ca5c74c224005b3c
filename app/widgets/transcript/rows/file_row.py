"""The rows of the attachments of a user's message. Main thread only."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF
from typing_extensions import override

from app.theme.icons import Icon
from app.theme.tokens import Size, Space, Type
from app.viewmodels.attachments import Chip
from app.widgets.transcript.rows.documents_row import DocumentsRow
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.picture_row import PictureRow
from app.widgets.transcript.rows.row import Hit, Paint, RowAction, Target, TranscriptRow

_ICON = 16


def file_rows(
    look: Look, chips: Sequence[Chip], folder: str = "", *, shows_documents: bool = False
) -> list[TranscriptRow]:
    """Return the rows of attachments: documents of the folder, the pictures in one row, each file.

    Args:
        look: theme and zoom.
        chips: the attachments.
        folder: name of the folder of the documents; empty if it is unknown.
        shows_documents: True if each document has a row below the one that stands for all.
    """
    documents = [(place, chip) for place, chip in enumerate(chips) if chip.from_folder]
    rows: list[TranscriptRow] = []
    if documents:
        rows.append(DocumentsRow(look, len(documents), folder, is_open=shows_documents))
    if shows_documents:
        rows += [FileRow(look, place, chip) for place, chip in documents]
    pictures = [(place, chip) for place, chip in enumerate(chips) if chip.picture is not None]
    files = [(place, chip) for place, chip in enumerate(chips) if chip.picture is None]
    if pictures:
        rows.append(PictureRow(look, pictures))
    rows += [FileRow(look, place, chip) for place, chip in files if not chip.from_folder]
    return rows


class FileRow(TranscriptRow):
    """An attached file: icon, name, pages. A click opens it."""

    def __init__(self, look: Look, place: int, chip: Chip) -> None:
        self._look = look
        self._chip = chip
        self._target = Target(RowAction.OPEN_FILE, str(place))
        self._width = 0
        metrics = QFontMetricsF(look.face(Type.UI).font)
        details = metrics.horizontalAdvance(self._details)
        self.natural_width = self._left + metrics.horizontalAdvance(chip.name) + details + 2

    @property
    def _details(self) -> str:
        return f" · {self._chip.details}" if self._chip.details else ""

    @property
    def _left(self) -> int:
        return self._look.px(_ICON) + self._look.px(Space.S)

    @override
    def measure(self, width: int) -> int:
        self._width = width
        return self._look.px(Size.CONTROL_MINI)

    @override
    def paint(self, paint: Paint) -> None:
        look, painter, height = self._look, paint.painter, self._look.px(Size.CONTROL_MINI)
        size = look.px(_ICON)
        icon = QRectF(0, (height - size) / 2, size, size)
        look.icons.paint(painter, Icon.FILE, look.colors.secondary, icon)
        face = look.face(Type.UI)
        font = QFont(face.font)
        metrics = QFontMetricsF(font)
        room = self._width - self._left - metrics.horizontalAdvance(self._details)
        name = metrics.elidedText(self._chip.name, Qt.TextElideMode.ElideMiddle, max(room, size))
        baseline = (height - face.line) / 2 + face.baseline
        font.setUnderline(paint.hovered == self._target)
        painter.setFont(font)
        painter.setPen(QColor(look.colors.text))
        painter.drawText(QPointF(self._left, baseline), name)
        painter.setFont(face.font)
        painter.setPen(QColor(look.colors.secondary))
        right = self._left + metrics.horizontalAdvance(name)
        painter.drawText(QPointF(right, baseline), self._details)

    @override
    def hits(self) -> list[Hit]:
        width = min(float(self._width), self.natural_width)
        rect = QRectF(0, 0, width, self._look.px(Size.CONTROL_MINI))
        return [Hit(self._target, rect, self._chip.name)]
