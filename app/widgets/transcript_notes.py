"""Rows that are about a message: state line, thinking pill, fold, how it was cut off, error card.

Main thread.
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPen
from typing_extensions import override

from app.theme.icons import Icon
from app.theme.tokens import Radius, Size, Space, TextStyle, Type
from app.viewmodels.transcript import StateKind, StateLine
from app.widgets.transcript_flow import TextFlow
from app.widgets.transcript_look import Look
from app.widgets.transcript_rows import Action, Hit, Paint, Row, Target
from app.words import commands, transcript as words
from engine.types import Problem

_CONTINUE = Target(Action.CONTINUE)
_BAR = 3
_ICON = 16
_BUTTON_LABEL = TextStyle(Type.UI.size, Type.UI.line, 500)
_CARD_TITLE = TextStyle(Type.UI.size, Type.UI.line, 600)
_CARD_TEXT = TextStyle(Type.UI.size, Type.UI.line + 2)


class StateRow(Row):
    """What was done with the conversation's state, or what the answer waits for."""

    def __init__(self, look: Look, line: StateLine) -> None:
        self.line = line
        self._look = look
        self._width = 0

    @override
    def measure(self, width: int) -> int:
        self._width = width
        return self._look.face(Type.SMALL).line + self._look.px(Space.S)

    @override
    def paint(self, paint: Paint) -> None:
        look, painter = self._look, paint.painter
        face = look.face(Type.SMALL)
        painter.setFont(face.font)
        painter.setPen(QColor(self._ink()))
        metrics = QFontMetricsF(face.font)
        text = metrics.elidedText(self.line.text, Qt.TextElideMode.ElideRight, self._width)
        painter.drawText(QPointF(0, face.baseline), text)
        if self.line.fraction is None:
            return
        track = QRectF(0, face.line + look.px(Space.XS), min(self._width, look.px(240)), _BAR)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(look.colors.strong_line))
        painter.drawRoundedRect(track, _BAR / 2, _BAR / 2)
        track.setWidth(max(_BAR, track.width() * min(1.0, self.line.fraction)))
        painter.setBrush(QColor(self._ink()))
        painter.drawRoundedRect(track, _BAR / 2, _BAR / 2)

    @override
    def hits(self) -> list[Hit]:
        if not self.line.details:
            return []
        face = self._look.face(Type.SMALL)
        width = min(self._width, QFontMetricsF(face.font).horizontalAdvance(self.line.text))
        rect = QRectF(0, 0, width, face.line)
        return [Hit(Target(Action.EXPLAIN), rect, tip=self.line.explained)]

    def _ink(self) -> str:
        colors = self._look.colors
        match self.line.kind:
            case StateKind.WAITING:
                return colors.secondary
            case StateKind.INSTANT:
                return colors.instant.ink
            case StateKind.ON_DISK:
                return colors.on_disk.ink
            case StateKind.REPLAYED | StateKind.MUST_READ:
                return colors.must_read.ink


@dataclass(frozen=True, slots=True)
class PillContent:
    """What a pill says; aside is elided."""

    label: str
    icon: Icon
    aside: str = ""


class PillRow(Row):
    """A small rounded button with a chevron, and a line of text beside it."""

    def __init__(self, look: Look, target: Target, content: PillContent) -> None:
        self.content = content
        self._look = look
        self._target = target
        self._width = 0

    @override
    def measure(self, width: int) -> int:
        self._width = width
        return self._look.px(Size.THINKING_PILL)

    @override
    def paint(self, paint: Paint) -> None:
        look, painter, pill = self._look, paint.painter, self._pill()
        colors, face = look.colors, look.face(Type.UI)
        hovered = paint.hovered == self._target
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(colors.selected if hovered else colors.user_bubble))
        painter.drawRoundedRect(pill, pill.height() / 2, pill.height() / 2)
        ink = colors.text if hovered else colors.secondary
        size = look.px(_ICON)
        icon = QRectF(look.px(Space.S), (pill.height() - size) / 2, size, size)
        look.icons.paint(painter, self.content.icon, ink, icon)
        baseline = (pill.height() - face.line) / 2 + face.baseline
        painter.setFont(face.font)
        painter.setPen(QColor(ink))
        painter.drawText(QPointF(icon.right() + Space.XS, baseline), self.content.label)
        x = pill.right() + look.px(Space.M)
        metrics = QFontMetricsF(face.font)
        aside = metrics.elidedText(self.content.aside, Qt.TextElideMode.ElideRight, self._width - x)
        painter.setPen(QColor(colors.tertiary))
        painter.drawText(QPointF(x, baseline), aside)

    @override
    def hits(self) -> list[Hit]:
        return [Hit(self._target, self._pill(), self.content.label)]

    def _pill(self) -> QRectF:
        look = self._look
        metrics = QFontMetricsF(look.face(Type.UI).font)
        around = look.px(Space.S) + look.px(_ICON) + Space.XS + look.px(Space.M)
        width = metrics.horizontalAdvance(self.content.label) + around
        return QRectF(0, 0, width, look.px(Size.THINKING_PILL))


class LinkRow(Row):
    """A line of small text that does something: unfold a long message."""

    def __init__(self, look: Look, target: Target, label: str) -> None:
        self._look = look
        self._target = target
        self._label = label
        self.natural_width = QFontMetricsF(look.face(Type.UI).font).horizontalAdvance(label) + 1

    @override
    def measure(self, width: int) -> int:
        return self._look.px(Size.CONTROL_MINI)

    @override
    def paint(self, paint: Paint) -> None:
        painter = paint.painter
        font = QFont(self._look.face(Type.UI).font)
        font.setUnderline(paint.hovered == self._target)
        painter.setFont(font)
        painter.setPen(QColor(self._look.colors.secondary))
        painter.drawText(self._rect(), Qt.AlignmentFlag.AlignVCenter, self._label)

    @override
    def hits(self) -> list[Hit]:
        return [Hit(self._target, self._rect(), self._label)]

    def _rect(self) -> QRectF:
        return QRectF(0, 0, self.natural_width, self._look.px(Size.CONTROL_MINI))


class CutRow(Row):
    """Says why an answer ends before its end, and offers to go on with it."""

    def __init__(self, look: Look, why: str, *, can_continue: bool) -> None:
        self._look = look
        self._why = why
        self._link = commands.CONTINUE if can_continue else ""

    @override
    def measure(self, width: int) -> int:
        return self._look.px(Size.CONTROL_MINI)

    @override
    def paint(self, paint: Paint) -> None:
        look, painter, ink = self._look, paint.painter, self._look.colors.tertiary
        look.icons.paint(painter, Icon.STOP, ink, self._icon())
        face = look.face(Type.SMALL)
        baseline = (self._look.px(Size.CONTROL_MINI) - face.line) / 2 + face.baseline
        painter.setFont(face.font)
        painter.setPen(QColor(ink))
        painter.drawText(QPointF(self._icon().right() + Space.XS, baseline), self._why)
        font = QFont(face.font)
        font.setUnderline(paint.hovered == _CONTINUE)
        painter.setFont(font)
        painter.setPen(QColor(look.colors.link))
        painter.drawText(QPointF(self._link_rect().left() + Space.S, baseline), self._link)

    @override
    def hits(self) -> list[Hit]:
        return [Hit(_CONTINUE, self._link_rect(), self._link)] if self._link else []

    def _icon(self) -> QRectF:
        size = self._look.px(14)
        return QRectF(-Space.HAIR, (self._look.px(Size.CONTROL_MINI) - size) / 2, size, size)

    def _link_rect(self) -> QRectF:
        """Of the link, with as much room beside it as it takes to hit it."""
        metrics = QFontMetricsF(self._look.face(Type.SMALL).font)
        left = self._icon().right() + Space.XS + metrics.horizontalAdvance(self._why)
        width = metrics.horizontalAdvance(self._link) + 2 * Space.S
        return QRectF(left, 0, width, self._look.px(Size.CONTROL_MINI))


class ErrorRow(Row):
    """What went wrong, why, what to do, and Retry."""

    def __init__(self, look: Look, problem: Problem) -> None:
        colors = look.colors
        self._look = look
        self._flows = [
            TextFlow(look, style, text, ink=ink)
            for style, text, ink in (
                (_CARD_TITLE, problem.title, colors.error.ink),
                (_CARD_TEXT, problem.cause, colors.text),
                (_CARD_TEXT, problem.advice, colors.secondary),
            )
            if text
        ]
        self._width = 0
        self._height = 0

    @override
    def measure(self, width: int) -> int:
        if width != self._width:
            self._width = width
            for flow in self._flows:
                flow.wrap(width - self._left - self._pad)
            text = sum(flow.height for flow in self._flows) + Space.XS * (len(self._flows) - 1)
            button = self._look.px(Size.CONTROL) + self._look.px(Space.M)
            self._height = 2 * self._pad + text + button
        return self._height

    @override
    def paint(self, paint: Paint) -> None:
        colors, painter = self._look.colors, paint.painter
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(colors.error.tint))
        card = QRectF(0, 0, self._width, self._height)
        painter.drawRoundedRect(card, Radius.CODE, Radius.CODE)
        size = self._look.px(_ICON)
        face = self._look.face(_CARD_TITLE)
        icon = QRectF(self._pad, self._pad + (face.line - size) / 2, size, size)
        self._look.icons.paint(painter, Icon.WARNING, colors.error.ink, icon)
        y: float = self._pad
        for flow in self._flows:
            flow.paint(painter, QPointF(self._left, y))
            y += flow.height + Space.XS
        self._paint_button(paint)

    @override
    def hits(self) -> list[Hit]:
        return [Hit(Target(Action.RETRY), self._button(), words.RETRY, words.RETRY)]

    @property
    def _pad(self) -> int:
        return self._look.px(Space.L)

    @property
    def _left(self) -> int:
        return self._pad + self._look.px(_ICON) + self._look.px(Space.S)

    def _button(self) -> QRectF:
        face, height = self._look.face(_BUTTON_LABEL), self._look.px(Size.CONTROL)
        width = QFontMetricsF(face.font).horizontalAdvance(words.RETRY) + 2 * self._look.px(Space.M)
        return QRectF(self._left, self._height - self._pad - height, width, height)

    def _paint_button(self, paint: Paint) -> None:
        colors, painter, rect = self._look.colors, paint.painter, self._button()
        hovered = paint.hovered == Target(Action.RETRY)
        painter.setPen(QPen(QColor(colors.error.ink), 1))
        painter.setBrush(QColor(colors.error.ink if hovered else colors.error.tint))
        inner = rect.adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawRoundedRect(inner, Radius.BUTTON, Radius.BUTTON)
        painter.setFont(self._look.face(_BUTTON_LABEL).font)
        painter.setPen(QColor(colors.error.tint if hovered else colors.error.ink))
        painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, words.RETRY)
