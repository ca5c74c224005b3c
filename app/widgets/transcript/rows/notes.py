"""Small rows: the Thinking button, a link such as "Show all", a note on a cut-off or empty answer.

Used on the main thread only.
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF
from typing_extensions import override

from app.theme.icons import Icon
from app.theme.tokens import Size, Space, Type
from app.viewmodels.transcript import ItemStatus, TranscriptItem
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.row import Hit, Paint, RowAction, Target, TranscriptRow
from app.words import commands, transcript as words

_ICON = 16


@dataclass(frozen=True, slots=True)
class PillContent:
    """The content of a `PillRow`: label and icon of the button, and a text beside it.

    The text `aside` is elided if it does not fit.
    """

    label: str
    icon: Icon
    aside: str = ""


class PillRow(TranscriptRow):
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


class LinkRow(TranscriptRow):
    """A link in small text, for example the link that unfolds a long message."""

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


@dataclass(frozen=True, slots=True)
class CutLink:
    """The link that completes or repeats an answer."""

    action: RowAction
    label: str


def cut_link(item: TranscriptItem) -> CutLink | None:
    """Return the link of an answer that was cut off or is empty, None if it needs none."""
    if item.can_continue:
        return CutLink(RowAction.CONTINUE, commands.CONTINUE)
    if item.can_retry:
        is_new = item.status is ItemStatus.UNANSWERED
        return CutLink(RowAction.RETRY, words.GET_ANSWER if is_new else words.RETRY)
    return None


class CutRow(TranscriptRow):
    """A note that says why an answer was cut off or is empty, with a link if that helps.

    In a narrow column the note is elided, and its tooltip has the whole text.
    """

    def __init__(self, look: Look, why: str, link: CutLink | None) -> None:
        self._look = look
        self._why = why
        self._shown = why  # the part that fits beside the link
        self._target = Target(link.action) if link else None
        self._link = link.label if link else ""
        self._metrics = QFontMetricsF(look.face(Type.SMALL).font)

    @override
    def measure(self, width: int) -> int:
        taken = self._icon().right() + Space.XS
        if self._link:
            taken += self._metrics.horizontalAdvance(self._link) + 2 * Space.S
        elided = Qt.TextElideMode.ElideRight
        self._shown = self._metrics.elidedText(self._why, elided, max(0.0, width - taken))
        return self._look.px(Size.CONTROL_MINI)

    @override
    def paint(self, paint: Paint) -> None:
        look, painter, ink = self._look, paint.painter, self._look.colors.tertiary
        look.icons.paint(painter, Icon.STOP, ink, self._icon())
        face = look.face(Type.SMALL)
        baseline = (self._look.px(Size.CONTROL_MINI) - face.line) / 2 + face.baseline
        painter.setFont(face.font)
        painter.setPen(QColor(ink))
        painter.drawText(QPointF(self._icon().right() + Space.XS, baseline), self._shown)
        font = QFont(face.font)
        font.setUnderline(self._target is not None and paint.hovered == self._target)
        painter.setFont(font)
        painter.setPen(QColor(look.colors.link))
        painter.drawText(QPointF(self._link_rect().left() + Space.S, baseline), self._link)

    @override
    def hits(self) -> list[Hit]:
        hits = [Hit(self._target, self._link_rect(), self._link)] if self._target else []
        if self._shown != self._why:
            note = QRectF(0, 0, self._link_rect().left(), self._look.px(Size.CONTROL_MINI))
            hits.append(Hit(Target(RowAction.EXPLAIN), note, tip=self._why))
        return hits

    def _icon(self) -> QRectF:
        size = self._look.px(14)
        return QRectF(-Space.HAIR, (self._look.px(Size.CONTROL_MINI) - size) / 2, size, size)

    def _link_rect(self) -> QRectF:
        """Return the click area of the link: its text and a margin on each side."""
        left = self._icon().right() + Space.XS + self._metrics.horizontalAdvance(self._shown)
        width = self._metrics.horizontalAdvance(self._link) + 2 * Space.S
        return QRectF(left, 0, width, self._look.px(Size.CONTROL_MINI))
