"""The header of a code block: language, number of lines, and the buttons Wrap, Save and Copy.

Used on the main thread only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF
from typing_extensions import override

from app.theme.icons import Icon
from app.theme.tokens import Radius, Size, Space, TextStyle, Type
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.row import Hit, Paint, RowAction, Target
from app.words import commands, transcript as words

LONG_CODE = 20  # if a block has more lines than this, its header shows the number of lines
_ICON = 15
# Space between two buttons. The click area of each button covers half of this space.
_GAP = Space.XL
_COPY = Target(RowAction.COPY_CODE)
_SAVE = Target(RowAction.SAVE_CODE)
_WRAP = Target(RowAction.TOGGLE_WRAP)
_LABEL = TextStyle(Type.SMALL.size, Type.SMALL.line)


@dataclass(frozen=True, slots=True)
class CodeHeading:
    """The content of the header of a code block."""

    language: str
    num_lines: int  # number of lines in the source text, with or without wrapping
    # True if lines are wrapped, False if a line is too wide but wrapping is off. None if all lines
    # fit, so that the header needs no Wrap button.
    wraps: bool | None

    @override
    def __str__(self) -> str:
        length = words.code_lines(self.num_lines) if self.num_lines > LONG_CODE else ""
        return " · ".join(part for part in (self.language, length) if part)


@dataclass(frozen=True, slots=True)
class _HeaderButton:
    """A button of the header. `rect` is its click area."""

    target: Target
    label: str
    icon: Icon
    tip: str
    rect: QRectF
    is_on: bool = False  # True if the button is painted as switched on
    has_label: bool = True  # False if only the icon is painted


class CodeHeader:
    """The header of a code block. It paints the buttons and returns their click areas.

    If the labels of the buttons leave no room for the language, as in a narrow column, the buttons
    are painted as icons.
    """

    def __init__(self, look: Look) -> None:
        self._look = look

    @property
    def height(self) -> int:
        return self._look.px(Size.CODE_HEADER)

    def hits(self, heading: CodeHeading, width: int) -> list[Hit]:
        buttons = reversed(self._buttons(heading, width))
        return [Hit(one.target, one.rect, one.label, one.tip) for one in buttons]

    def paint(self, paint: Paint, heading: CodeHeading, width: int) -> None:
        painter, pad = paint.painter, self._look.px(Size.CODE_PAD)
        face = self._look.face(_LABEL)
        buttons = self._buttons(heading, width, copied=paint.confirmed == _COPY)
        painter.setFont(face.font)
        painter.setPen(QColor(self._look.colors.secondary))
        room = int(max(0, (buttons[-1].rect.left() if buttons else width) - pad))
        says = painter.fontMetrics().elidedText(str(heading), Qt.TextElideMode.ElideRight, room)
        baseline = (self.height - face.line) / 2 + face.baseline
        painter.drawText(QPointF(pad, baseline), says)
        for button in buttons:
            self._paint_button(paint, button, baseline)

    def _buttons(
        self, heading: CodeHeading, width: int, *, copied: bool = False
    ) -> list[_HeaderButton]:
        """Return the buttons from right to left. On paper there are none."""
        if self._look.on_paper:
            return []
        buttons = self._place(heading, width, copied=copied, has_labels=True)
        metrics = QFontMetricsF(self._look.face(_LABEL).font)
        room = buttons[-1].rect.left() - self._look.px(Size.CODE_PAD)
        if metrics.horizontalAdvance(str(heading)) <= room:
            return buttons
        return self._place(heading, width, copied=copied, has_labels=False)

    def _place(
        self, heading: CodeHeading, width: int, *, copied: bool, has_labels: bool
    ) -> list[_HeaderButton]:
        """Return the buttons with or without their labels.

        The Copy button shows "Copied" for a moment after a click. The positions of Save and Wrap
        are computed from the width of "Copy", so that these two buttons do not move.
        """

        def rect(right: float, label: str) -> QRectF:
            return self._rect(right, label if has_labels else "")

        right = width - self._look.px(Size.CODE_PAD) + self._look.px(_GAP) / 2
        label, icon = (commands.COPIED, Icon.CHECK) if copied else (commands.COPY, Icon.COPY)
        copy = _HeaderButton(_COPY, label, icon, words.COPY_CODE, rect(right, label))
        area = rect(rect(right, commands.COPY).left(), words.SAVE)
        buttons = [copy, _HeaderButton(_SAVE, words.SAVE, Icon.DOWNLOAD, words.SAVE_TIP, area)]
        if heading.wraps is not None:
            icon = Icon.CHECK if heading.wraps else Icon.WRAP
            tip = words.UNWRAP_TIP if heading.wraps else words.WRAP_TIP
            area = rect(area.left(), words.WRAP)
            buttons.append(_HeaderButton(_WRAP, words.WRAP, icon, tip, area, heading.wraps))
        return [replace(button, has_label=has_labels) for button in buttons]

    def _rect(self, right: float, label: str) -> QRectF:
        """Return the click area of a button: its icon, its label and half of _GAP on each side."""
        px = self._look.px
        metrics = QFontMetricsF(self._look.face(_LABEL).font)
        beside = px(Space.XS) + metrics.horizontalAdvance(label) if label else 0
        width = px(_ICON) + beside + px(_GAP)
        return QRectF(right - width, 2, width, self.height - 4)

    def _paint_button(self, paint: Paint, button: _HeaderButton, baseline: float) -> None:
        colors, painter, px = self._look.colors, paint.painter, self._look.px
        is_lit = button.is_on or button.target in (paint.hovered, paint.confirmed)
        ink = colors.text if is_lit else colors.secondary
        size, beside = px(_ICON), px(_GAP) / 2
        icon = QRectF(button.rect.left() + beside, (self.height - size) / 2, size, size)
        if button.is_on:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(colors.selected))
            less = beside - px(Space.S)
            chip = button.rect.adjusted(less, Space.HAIR, -less, -Space.HAIR)
            painter.drawRoundedRect(chip, Radius.ROW, Radius.ROW)
        if button.has_label:
            painter.setPen(QColor(ink))
            painter.drawText(QPointF(icon.right() + px(Space.XS), baseline), button.label)
        self._look.icons.paint(painter, button.icon, ink, icon)
