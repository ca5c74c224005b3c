"""The strip above a block of code: its language, how long it is, Wrap, Save and Copy. Main thread."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor
from typing_extensions import override

from app.theme.icons import Icon
from app.theme.tokens import Radius, Size, Space, TextStyle, Type
from app.widgets.transcript_look import Look
from app.widgets.transcript_rows import Action, Hit, Paint, Target
from app.words import commands, transcript as words

LONG_CODE = 20  # lines; longer blocks say how long
_BUTTON = 84  # pixels
_ICON = 15
_COPY = Target(Action.COPY_CODE)
_SAVE = Target(Action.SAVE_CODE)
_WRAP = Target(Action.TOGGLE_WRAP)
_LABEL = TextStyle(Type.SMALL.size, Type.SMALL.line)


@dataclass(frozen=True, slots=True)
class Heading:
    """What there is to say of a block. wraps is None where no line is too wide."""

    language: str
    num_lines: int
    wraps: bool | None

    @override
    def __str__(self) -> str:
        length = words.code_lines(self.num_lines) if self.num_lines > LONG_CODE else ""
        return " · ".join(part for part in (self.language, length) if part)


@dataclass(frozen=True, slots=True)
class _Button:
    """A word with an icon in the header, and where they may be clicked."""

    target: Target
    label: str
    icon: Icon
    tip: str
    rect: QRectF
    is_on: bool = False


class CodeHeader:
    """Paints and hits the header of blocks that are as wide as width."""

    def __init__(self, look: Look) -> None:
        self._look = look

    @property
    def height(self) -> int:
        return self._look.px(Size.CODE_HEADER)

    def hit(self, heading: Heading, width: int, point: QPointF) -> Hit | None:
        for button in self._buttons(heading, width):
            if button.rect.contains(point):
                return Hit(button.target, button.rect, button.tip)
        return None

    def paint(self, paint: Paint, heading: Heading, width: int) -> None:
        painter, pad = paint.painter, self._look.px(Space.M + Space.HAIR)
        face = self._look.face(_LABEL)
        buttons = self._buttons(heading, width, copied=paint.confirmed == _COPY)
        painter.setFont(face.font)
        painter.setPen(QColor(self._look.colors.secondary))
        room = int(max(0, buttons[-1].rect.left() - pad))
        says = painter.fontMetrics().elidedText(str(heading), Qt.TextElideMode.ElideRight, room)
        baseline = (self.height - face.line) / 2 + face.baseline
        painter.drawText(QPointF(pad, baseline), says)
        for button in buttons:
            self._paint_button(paint, button, baseline)

    def _buttons(self, heading: Heading, width: int, *, copied: bool = False) -> list[_Button]:
        """From the right."""
        copy = (commands.COPIED, Icon.CHECK) if copied else (commands.COPY, Icon.COPY)
        room = self._look.px(_BUTTON)
        last = QRectF(width - room - 2, 2, room, self.height - 4)
        buttons = [
            _Button(_COPY, *copy, words.COPY_CODE, last),
            _Button(_SAVE, words.SAVE, Icon.DOWNLOAD, words.SAVE_TIP, last.translated(-room, 0)),
        ]
        if heading.wraps is not None:
            icon = Icon.CHECK if heading.wraps else Icon.WRAP
            tip = words.UNWRAP_TIP if heading.wraps else words.WRAP_TIP
            rect = last.translated(-2 * room, 0)
            buttons.append(_Button(_WRAP, words.WRAP, icon, tip, rect, heading.wraps))
        return buttons

    def _paint_button(self, paint: Paint, button: _Button, baseline: float) -> None:
        colors, painter = self._look.colors, paint.painter
        is_lit = button.is_on or button.target in (paint.hovered, paint.confirmed)
        ink = colors.text if is_lit else colors.secondary
        size, gap = self._look.px(_ICON), self._look.px(Space.M)
        label = painter.fontMetrics().horizontalAdvance(button.label)
        x = button.rect.right() - gap - label
        icon = QRectF(x - size - Space.XS, (self.height - size) / 2, size, size)
        if button.is_on:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(colors.selected))
            chip = button.rect.adjusted(0, Space.HAIR, 0, -Space.HAIR)
            chip.setLeft(icon.left() - Space.S)
            chip.setRight(x + label + Space.S)
            painter.drawRoundedRect(chip, Radius.ROW, Radius.ROW)
        painter.setPen(QColor(ink))
        painter.drawText(QPointF(x, baseline), button.label)
        self._look.icons.paint(painter, button.icon, ink, icon)
