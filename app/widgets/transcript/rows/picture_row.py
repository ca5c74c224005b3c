"""The row of the pictures of a user's message, side by side in lines. Main thread only.

The places of the pictures follow from their stored sizes, so the row keeps its height when the
thumbnails arrive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen
from typing_extensions import override

from app.conversation.attachments import AttachedPicture
from app.theme.icons import Icon
from app.theme.tokens import Radius, Space, Type
from app.viewmodels.attachments import Chip
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.picture_shelf import WantedImage
from app.widgets.transcript.rows.row import (
    Hit,
    IdleResult,
    Paint,
    RowAction,
    Target,
    TranscriptRow,
)
from app.words import attachments as words

# Highest pictures of a message, by the number of its pictures. Many pictures are smaller.
_HEIGHTS = ((1, 240), (4, 160))
_LOWEST = 112
_LEAST = 28  # shortest side, so that a very long picture can be clicked
_ICON = 18
_PAPER_RATIO = 3.0  # dots per pixel on paper


@dataclass(frozen=True, slots=True)
class _Placed:
    """A picture and its place in the row."""

    chip: Chip
    picture: AttachedPicture
    target: Target
    rect: QRectF


class PictureRow(TranscriptRow):
    """The pictures of a message. A click opens one.

    pictures: the place of each picture among the attachments of the message, and its chip.
    """

    def __init__(self, look: Look, pictures: Sequence[tuple[int, Chip]]) -> None:
        self._look = look
        self._pictures = tuple(pictures)
        self._placed: list[_Placed] = []
        self._lines: list[int] = []  # the top of each line

    @override
    def measure(self, width: int) -> int:
        look, gap = self._look, self._look.px(Space.S)
        highest = look.px(_highest(len(self._pictures)))
        self._placed, self._lines = [], [0]
        x = top = line = widest = 0
        for place, chip in self._pictures:
            picture = chip.picture
            assert picture is not None
            wide, high = self._fitted(picture, width, highest)
            if x and x + wide > width:
                top += line + gap
                x = line = 0
                self._lines.append(top)
            target = Target(RowAction.OPEN_PICTURE, str(place))
            self._placed.append(_Placed(chip, picture, target, QRectF(x, top, wide, high)))
            widest, line = max(widest, x + wide), max(line, high)
            x += wide + gap
        self.natural_width = widest
        self.num_lines = len(self._lines)
        return top + line

    @override
    def paint(self, paint: Paint) -> None:
        for one in self._placed:
            if one.rect.bottom() >= paint.top and one.rect.top() <= paint.bottom:
                self._paint_picture(paint, one)

    @override
    def page_breaks(self) -> Sequence[int]:
        return self._lines[1:]

    @override
    def hits(self) -> list[Hit]:
        return [
            Hit(one.target, one.rect, words.picture_name(one.chip.name), one.chip.tip)
            for one in self._placed
        ]

    @override
    def advance(self) -> IdleResult:
        """Request the thumbnails of a printed page, which is painted once."""
        pictures = self._look.pictures
        wanted = [self._wanted(one, _PAPER_RATIO) for one in self._placed]
        found = [pictures.find(one) is not None or pictures.is_missing(one) for one in wanted]
        return IdleResult.DONE if all(found) else IdleResult.WAITING

    def _fitted(self, picture: AttachedPicture, width: int, highest: int) -> tuple[int, int]:
        look = self._look
        natural = look.px(picture.width), look.px(picture.height)
        share = min(1.0, width / max(1, natural[0]), highest / max(1, natural[1]))
        least = look.px(_LEAST)
        wide, high = (max(least, round(side * share)) for side in natural)
        return min(width, wide), min(highest, high)

    def _wanted(self, one: _Placed, ratio: float) -> WantedImage:
        return WantedImage(
            one.picture,
            max(1, round(one.rect.width() * ratio)),
            max(1, round(one.rect.height() * ratio)),
            round(self._look.px(Radius.CODE) * ratio),
        )

    def _paint_picture(self, paint: Paint, one: _Placed) -> None:
        look, painter = self._look, paint.painter
        ratio = _PAPER_RATIO if look.on_paper else painter.device().devicePixelRatio()
        wanted = self._wanted(one, ratio)
        image = look.pictures.find(wanted)
        painter.save()
        painter.setRenderHints(
            QPainter.RenderHint.Antialiasing | QPainter.RenderHint.SmoothPixmapTransform
        )
        if image is None:
            self._paint_placeholder(painter, one, is_missing=look.pictures.is_missing(wanted))
        else:
            painter.drawImage(one.rect, image)
        is_hovered = paint.hovered == one.target
        painter.setPen(
            QPen(QColor(look.colors.accent), Space.HAIR)
            if is_hovered
            else QPen(QColor(look.colors.hairline), 1)
        )
        painter.setBrush(Qt.BrushStyle.NoBrush)
        radius = look.px(Radius.CODE)
        painter.drawRoundedRect(one.rect.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)
        painter.restore()

    def _paint_placeholder(self, painter: QPainter, one: _Placed, *, is_missing: bool) -> None:
        """Paint a box with the sign of a picture; if its file is missing, say so."""
        look, rect = self._look, one.rect
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(look.colors.canvas))
        radius = look.px(Radius.CODE)
        painter.drawRoundedRect(rect, radius, radius)
        face, size = look.face(Type.SMALL), look.px(_ICON)
        text = words.PICTURE_MISSING if is_missing else ""
        metrics = QFontMetricsF(face.font)
        has_room = rect.height() >= size + face.line + 2 * look.px(Space.S)
        top = rect.center().y() - (size + face.line if text and has_room else size) / 2
        icon = QRectF(rect.center().x() - size / 2, top, size, size)
        sign = Icon.WARNING if is_missing else Icon.PICTURE
        look.icons.paint(painter, sign, look.colors.secondary, icon)
        if text and has_room:
            room = rect.adjusted(look.px(Space.S), 0, -look.px(Space.S), 0)
            room.setTop(icon.bottom())
            room.setHeight(face.line)
            painter.setFont(face.font)
            painter.setPen(QColor(look.colors.secondary))
            shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room.width())
            painter.drawText(room, Qt.AlignmentFlag.AlignCenter, shown)


def _highest(num_pictures: int) -> int:
    return next((height for most, height in _HEIGHTS if num_pictures <= most), _LOWEST)
