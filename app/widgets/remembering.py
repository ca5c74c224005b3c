"""The page of the Help menu that explains with a picture what Rejoinder remembers. Main thread."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget
from typing_extensions import override

from app.controllers.time_saved import TimeSaved
from app.theme.palette import Theme
from app.theme.tokens import Radius, Size, Space, StateInk, Type
from app.viewmodels import figures
from app.viewmodels.state_line import StateKind
from app.widgets.color_dot import ColorDot
from app.widgets.help_sheet import HelpSheet, page_heading
from app.widgets.line_height import Sentences
from app.widgets.transcript.rows.gap import line_ink
from app.words import commands, promise as words

_BAR = Size.CONTROL_LARGE  # height of a bar
_NEW = 0.2  # width of a new message, as a share of the widget
_LEGEND = (
    (StateKind.INSTANT, words.GREEN),
    (StateKind.ON_DISK, words.BLUE),
    (StateKind.AVOIDABLE, words.AMBER),
    (StateKind.READ, words.GRAY),
)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a bar: its share of the width of the widget, its text and its colours."""

    share: float
    text: str
    ink: StateInk


class MemoryPicture(QWidget):
    """A bar for each of three messages: the part of the chat that is restored, and what is read."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setAccessibleName(words.PICTURE)
        self.setMinimumSize(self.sizeHint())
        theme.changed.connect(self.update)

    @override
    def sizeHint(self) -> QSize:
        row = self._scaled(Type.SMALL.line) + Space.XS + self._scaled(_BAR)
        return QSize(Size.NAME_WIDTH, 3 * row + 2 * Space.L)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._theme.zoomed_font(Type.SMALL))
        text_height, bar_height = self._scaled(Type.SMALL.line), self._scaled(_BAR)
        top = 0.0
        for title, parts in self._rows():
            painter.setPen(QColor(self._theme.colors.secondary))
            line = QRectF(0, top, self.width(), text_height)
            painter.drawText(line, Qt.AlignmentFlag.AlignLeft, title)
            top += text_height + Space.XS
            self._paint_bar(painter, QRectF(0, top, self.width(), bar_height), parts)
            top += bar_height + Space.L

    def _scaled(self, height: int) -> int:
        return round(height * max(1.0, self._theme.zoom))

    def _rows(self) -> tuple[tuple[str, tuple[_Part, ...]], ...]:
        """Return title and parts of each bar. What is restored is as long as the bar before."""
        colors = self._theme.colors
        read = StateInk(colors.secondary, colors.hover)
        new = _Part(_NEW, words.READ, read)
        return (
            (words.FIRST_MESSAGE, (_Part(1 - 2 * _NEW, words.READ, read),)),
            (words.NEXT_MESSAGE, (_Part(1 - 2 * _NEW, words.RESTORED, colors.instant), new)),
            (words.AFTER_RESTART, (_Part(1 - _NEW, words.FROM_DISK, colors.on_disk), new)),
        )

    def _paint_bar(self, painter: QPainter, bar: QRectF, parts: tuple[_Part, ...]) -> None:
        left, metrics = bar.left(), QFontMetricsF(painter.font())
        for part in parts:
            rect = QRectF(left, bar.top(), part.share * bar.width(), bar.height())
            left = rect.right()
            body = rect.adjusted(0, 0, -Space.HAIR, 0)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(part.ink.tint))
            painter.drawRoundedRect(body, Radius.ROW, Radius.ROW)
            painter.setPen(QColor(part.ink.ink))
            text = metrics.elidedText(part.text, Qt.TextElideMode.ElideRight, body.width())
            painter.drawText(body, Qt.AlignmentFlag.AlignCenter, text)


def show_remembering(theme: Theme, saved: TimeSaved, parent: QWidget) -> None:
    """Open the page over a window."""
    sheet = HelpSheet("remembering", commands.REMEMBERING, parent)
    sheet.open_page(_page(theme, saved, sheet), QSize(Size.SETTINGS_WIDTH, Size.PAGE_HEIGHT))


def _page(theme: Theme, saved: TimeSaved, parent: QWidget) -> QWidget:
    page = QWidget(parent)
    column = QVBoxLayout(page)
    column.setContentsMargins(Space.XXL, Space.XL, Space.XXL, Space.XL)
    column.setSpacing(Space.M)
    column.addWidget(page_heading(commands.REMEMBERING, page))
    column.addWidget(Sentences(page, text=words.WHY))
    column.addSpacing(Space.S)
    column.addWidget(MemoryPicture(theme, page))
    column.addSpacing(Space.S)
    column.addWidget(Sentences(page, text=words.WHAT))
    if saved.total_s >= 1:
        column.addWidget(page_heading(words.SAVED_HEADING, page))
        today = figures.long_time(saved.today_s) if saved.today_s >= 1 else ""
        sums = words.saved(today=today, total=figures.long_time(saved.total_s))
        column.addWidget(Sentences(page, text=sums))
        note = Sentences(page, "small", words.SAVED_NOTE)
        note.setProperty("tone", "secondary")
        column.addWidget(note)
    column.addWidget(page_heading(words.AGAIN_HEADING, page))
    for sentence in (words.OTHER_MODEL, words.SYSTEM_PROMPT, words.EDITED, words.EVICTED):
        column.addWidget(Sentences(page, text=sentence))
    column.addSpacing(Space.S)
    more = Sentences(page, "small", words.MORE)
    more.setProperty("tone", "secondary")
    column.addWidget(more)
    column.addWidget(page_heading(words.COLORS_HEADING, page))
    for kind, sentence in _LEGEND:
        column.addLayout(
            _legend_row(
                ColorDot(theme, partial(line_ink, kind=kind), page), Sentences(page, text=sentence)
            )
        )
    column.addStretch()
    return page


def _legend_row(dot: ColorDot, sentence: Sentences) -> QHBoxLayout:
    row = QHBoxLayout()
    row.setSpacing(Space.S)
    row.addWidget(dot, 0, Qt.AlignmentFlag.AlignTop)
    row.addWidget(sentence, 1)
    return row
