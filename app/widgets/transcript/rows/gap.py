"""The row between a question and its answer: state line at the left, buttons at the right.

Used on the main thread only. The state line shows where the model's context came from, for example
from memory. While the answer waits, the line shows the reason. The row has a fixed height, so that
nothing moves when the state line or the buttons appear or disappear.
"""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF
from typing_extensions import override

from app.theme.tokens import Colors, Size, Space, Type
from app.viewmodels.state_line import StateKind, StateLine, StateLink
from app.widgets.transcript.rows.actions import ActionsRow
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.row import Hit, Paint, RowAction, Target, TranscriptRow
from app.words import commands, state as words

_BAR = 3
_LEAST = 96  # width that an elided text needs, in px
_DOT = " · "
# the target and the text of each link
_LINKS = {
    StateLink.STOP: (Target(RowAction.STOP), commands.STOP),
    StateLink.WHY: (Target(RowAction.WHY_READ), words.WHY),
    StateLink.STORAGE: (Target(RowAction.CHAT_STORAGE), words.STORAGE),
}


class StateRow(TranscriptRow):
    """The state line of an answer: the origin of the model's context, or the reason for a wait.

    The line may end with links, for example Stop. While the progress is known, the line has a
    progress bar.
    """

    def __init__(self, look: Look, line: StateLine) -> None:
        self.has_links = bool(line.links)
        self._look = look
        self._line = line
        self._face = look.face(Type.SMALL)
        self._metrics = QFontMetricsF(self._face.font)
        # The text that fits into the width: the full text, a short text, an elided text or "".
        self._text = line.text
        self._width = 0

    @override
    def measure(self, width: int) -> int:
        """Shorten the text so that the text and the links fit into the width.

        A text without a link is empty if only a few letters of it fit.
        """
        links = "".join(f"{_DOT}{_LINKS[link][1]}" for link in self._line.links)
        room = width - self._metrics.horizontalAdvance(links)
        texts = (self._line.text, *self._line.shorter)
        fitting = (text for text in texts if self._metrics.horizontalAdvance(text) <= room)
        text = next(fitting, texts[-1])
        elided = self._metrics.elidedText(text, Qt.TextElideMode.ElideRight, room)
        is_readable = elided == text or room >= self._look.px(_LEAST)
        self._text = elided if is_readable or self.has_links else ""
        self._width = width
        return self._face.line

    @property
    def is_cut(self) -> bool:
        """True if not even the shortest text of the line fits."""
        return self._text not in (self._line.text, *self._line.shorter)

    @override
    def paint(self, paint: Paint) -> None:
        painter = paint.painter
        painter.setFont(self._face.font)
        ink = QColor(line_ink(self._look.colors, self._line.kind))
        painter.setPen(ink)
        painter.drawText(QPointF(0, self._face.baseline), self._text)
        for target, name, left in self._placed_links():
            painter.setFont(self._face.font)
            painter.setPen(ink)
            dot = left - self._metrics.horizontalAdvance(_DOT)
            painter.drawText(QPointF(dot, self._face.baseline), _DOT)
            font = QFont(self._face.font)
            font.setUnderline(paint.hovered == target)
            painter.setFont(font)
            painter.setPen(QColor(self._look.colors.link))
            painter.drawText(QPointF(left, self._face.baseline), name)
        if self._line.fraction is not None:
            self._paint_bar(paint, self._line.fraction)

    @override
    def hits(self) -> list[Hit]:
        hits: list[Hit] = []
        if self._line.details or self._text != self._line.text:
            said = QRectF(0, 0, self._metrics.horizontalAdvance(self._text), self._face.line)
            hits.append(Hit(Target(RowAction.EXPLAIN), said, tip=self._line.explained))
        hits += (
            Hit(target, self._link_rect(name, x), name) for target, name, x in self._placed_links()
        )
        return hits

    def _placed_links(self) -> Iterator[tuple[Target, str, float]]:
        """Yield the target, the text and the left edge of each link."""
        before = self._text
        for link in self._line.links:
            target, name = _LINKS[link]
            yield target, name, self._metrics.horizontalAdvance(f"{before}{_DOT}")
            before = f"{before}{_DOT}{name}"

    def _link_rect(self, name: str, left: float) -> QRectF:
        """Return the click area of a link: its text and a margin on each side.

        The margins of two links do not overlap.
        """
        height = self._look.px(Size.CONTROL)
        top = (self._face.line - height) / 2
        width = self._metrics.horizontalAdvance(name)
        margin = min(Space.S, self._metrics.horizontalAdvance(_DOT) / 2)
        return QRectF(left, top, width, height).adjusted(-margin, 0, margin, 0)

    def _paint_bar(self, paint: Paint, fraction: float) -> None:
        painter, width = paint.painter, self._metrics.horizontalAdvance(self._text)
        track = QRectF(0, self._face.line + Space.HAIR, width, _BAR)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._look.colors.strong_line))
        painter.drawRoundedRect(track, _BAR / 2, _BAR / 2)
        track.setWidth(max(_BAR, track.width() * min(1.0, fraction)))
        painter.setBrush(QColor(line_ink(self._look.colors, self._line.kind)))
        painter.drawRoundedRect(track, _BAR / 2, _BAR / 2)


class GapRow(TranscriptRow):
    """The buttons of a question and the state line of its answer, side by side.

    Only the newest answer has a state line. When the content changes, this object is not replaced.
    So if the state line changes while the user clicks Stop, the mouse is pressed and released on
    the same row, which counts as a click.
    """

    def __init__(self, look: Look) -> None:
        self._look = look
        self._state: StateRow | None = None
        self._actions: ActionsRow | None = None
        # True if the state line has a link and no room beside the buttons, as in a narrow column
        # with larger text. The buttons are left out then.
        self._is_narrow = False
        self._state_top = self._actions_top = 0.0
        self._room = 0  # width available for the state line, left of the buttons

    def show(self, actions: ActionsRow | None, line: StateLine | None) -> None:
        self._actions = actions
        self._state = None if line is None else StateRow(self._look, line)
        self.width = -1  # -1: the row must be measured again

    @override
    def measure(self, width: int) -> int:
        height, self._room, self._is_narrow = self._look.px(Size.MESSAGE_GAP), width, False
        if self._actions is not None:
            self._actions_top = (height - self._actions.measure(width)) / 2
            self._room = int(self._actions.left) - self._look.px(Space.M)
        if self._state is not None:
            self._state_top = (height - self._state.measure(self._room)) / 2
            self._is_narrow = self._state.has_links and self._state.is_cut
            if self._is_narrow:
                self._room = width
                self._state.measure(width)
        return height

    @override
    def paint(self, paint: Paint) -> None:
        if self._actions is not None and not self._is_narrow:
            _paint_at(self._actions_top, self._actions, paint)
        if self._state is not None:
            # While the buttons are hidden, the state line may use their space, unless it has a
            # link. The link must not move when the mouse enters the message and the buttons appear.
            alone = not paint.actions_shown and not self._state.has_links
            self._state.measure(self.width if alone else self._room)
            _paint_at(self._state_top, self._state, paint)

    @override
    def hits(self) -> list[Hit]:
        said = [] if self._state is None else self._state.hits()
        buttons = [] if self._actions is None or self._is_narrow else self._actions.hits()
        return [
            *(hit.translated(0, self._state_top) for hit in said),
            *(hit.translated(0, self._actions_top) for hit in buttons),
        ]


def line_ink(colors: Colors, kind: StateKind) -> str:
    """Return the colour of a state line."""
    match kind:
        case StateKind.WAITING:
            return colors.secondary
        case StateKind.READ:
            return colors.tertiary
        case StateKind.INSTANT:
            return colors.instant.ink
        case StateKind.ON_DISK:
            return colors.on_disk.ink
        case StateKind.AVOIDABLE:
            return colors.must_read.ink


def _paint_at(y: float, row: TranscriptRow, paint: Paint) -> None:
    paint.painter.translate(0, y)
    row.paint(paint)
    paint.painter.translate(0, -y)
