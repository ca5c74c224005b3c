"""The error card of a failed answer. Used on the main thread only.

The widget in app/widgets/notice.py has the same appearance.
"""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPen
from typing_extensions import override

from app.theme.icons import Icon
from app.theme.tokens import Radius, Size, Space, Type
from app.viewmodels.blocks import LINE_BREAK
from app.widgets.transcript.rows.flow import TextFlow
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.row import Hit, Paint, RowAction, Target, TranscriptRow
from app.words import commands, problems, transcript as words
from engine.problem import Problem

_ICON = 16
_RETRY = Target(RowAction.RETRY)
_DETAILS = Target(RowAction.TOGGLE_DETAILS)
_COPY = Target(RowAction.COPY_DETAILS)


class ErrorRow(TranscriptRow):
    """A card with the title of a problem, its cause, advice and a Retry button.

    If the problem has details, the card also has a Details button. Details shows the details and a
    Copy button.
    """

    def __init__(self, look: Look, problem: Problem, *, is_open: bool) -> None:
        colors = look.colors
        self._look = look
        self._texts = [
            TextFlow(look, style, text, ink=ink)
            for style, text, ink in (
                (Type.CARD_TITLE, problem.title, colors.error.ink),
                (Type.CARD, problem.cause, colors.text),
                (Type.CARD, problem.advice, colors.secondary),
            )
            if text
        ]
        self._details: TextFlow | None = None
        self._labels = {_RETRY: words.RETRY}
        self._chevron = Icon.CHEVRON_RIGHT_SMALL
        if problem.details:
            self._labels[_DETAILS] = problems.DETAILS
        if problem.details and is_open:
            self._labels[_COPY] = commands.COPY
            self._chevron = Icon.CHEVRON_DOWN_SMALL
            lines = problem.details.replace("\n", LINE_BREAK)
            self._details = TextFlow(look, Type.LOG, lines, ink=colors.secondary)
        self._buttons: dict[Target, QRectF] = {}
        self._details_top = 0.0

    @override
    def measure(self, width: int) -> int:
        gap, room = self._look.px(Space.XS), width - self._left - self._pad
        y: float = self._pad
        for text in self._texts:
            text.wrap(room)
            y += text.height + gap
        y += self._look.px(Space.S)
        self._buttons = self._place_buttons(y)
        y += self._look.px(Size.CONTROL)
        if self._details is not None:
            self._details_top = y + self._look.px(Space.M)
            self._details.wrap(room)
            y = self._details_top + self._details.height
        return round(y) + self._pad

    @override
    def paint(self, paint: Paint) -> None:
        colors, painter = self._look.colors, paint.painter
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(colors.error.tint))
        painter.drawRoundedRect(QRectF(0, 0, self.width, self.height), Radius.CODE, Radius.CODE)
        size = self._look.px(_ICON)
        title = self._look.face(Type.CARD_TITLE)
        icon = QRectF(self._pad, self._pad + (title.line - size) / 2, size, size)
        self._look.icons.paint(painter, Icon.WARNING, colors.error.ink, icon)
        y: float = self._pad
        for text in self._texts:
            text.paint(painter, QPointF(self._left, y))
            y += text.height + self._look.px(Space.XS)
        for target, rect in self._buttons.items():
            self._paint_button(paint, target, rect)
        if self._details is not None:
            self._details.paint(painter, QPointF(self._left, self._details_top))

    @override
    def hits(self) -> list[Hit]:
        labels = self._labels
        return [Hit(one, rect, labels[one], labels[one]) for one, rect in self._buttons.items()]

    @property
    def _pad(self) -> int:
        return self._look.px(Space.L)

    @property
    def _left(self) -> int:
        return self._pad + self._look.px(_ICON) + self._look.px(Space.S)

    def _place_buttons(self, y: float) -> dict[Target, QRectF]:
        """Place the buttons side by side and return the rectangle of each button.

        The Details button is wider than its label, because it also has a chevron.
        """
        look, x, placed = self._look, float(self._left), dict[Target, QRectF]()
        metrics = QFontMetricsF(look.face(Type.LABEL).font)
        for target, label in self._labels.items():
            chevron = look.px(_ICON) if target == _DETAILS else 0
            width = metrics.horizontalAdvance(label) + 2 * look.px(Space.M) + chevron
            placed[target] = QRectF(x, y, width, look.px(Size.CONTROL))
            x += width + look.px(Space.XS)
        return placed

    def _paint_button(self, paint: Paint, target: Target, rect: QRectF) -> None:
        """Paint a button.

        If the mouse is over the Retry button, the button is filled with the error colour. If the
        mouse is over another button, the label of the button is underlined.
        """
        look, painter, error = self._look, paint.painter, self._look.colors.error
        hovered, ink = paint.hovered == target, error.ink
        font = QFont(look.face(Type.LABEL).font)
        if target == _RETRY:
            painter.setPen(QPen(QColor(error.ink), 1))
            painter.setBrush(QColor(error.ink if hovered else error.tint))
            inner = rect.adjusted(0.5, 0.5, -0.5, -0.5)
            painter.drawRoundedRect(inner, Radius.BUTTON, Radius.BUTTON)
            ink = error.tint if hovered else error.ink
        else:
            font.setUnderline(hovered)
        if target == _DETAILS:
            size = look.px(_ICON)
            chevron = QRectF(rect.left() + look.px(Space.S), 0, size, size)
            chevron.moveTop(rect.center().y() - size / 2)
            look.icons.paint(painter, self._chevron, ink, chevron)
            rect = rect.adjusted(size, 0, 0, 0)
        painter.setFont(font)
        painter.setPen(QColor(ink))
        label = commands.COPIED if paint.confirmed == target else self._labels[target]
        painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, label)
