"""The composer's round button, which sends the message or stops the answer."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from PySide6.QtCore import QPoint, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import (
    QAction,
    QColor,
    QContextMenuEvent,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QAbstractButton, QWidget
from typing_extensions import override

from app.theme.icons import GRID, Icon
from app.theme.palette import Theme
from app.theme.tokens import Size, Space
from app.widgets.icon_button import MAX_ZOOM
from app.widgets.menu import Menu, pop_up
from app.widgets.message_edit import send_key
from app.words import commands, composer as words

HOLD_MS = 500  # length of a press that opens the menu
_ESCAPE = QKeySequence("Esc").toString(QKeySequence.SequenceFormat.NativeText)


class SendState(StrEnum):
    """The action of a click on the button. The value is the button's accessible name."""

    SEND = words.SEND
    STOP = commands.STOP


class SendButton(QAbstractButton):
    """A round button, 32 px at the usual size of text, grey while it is disabled.

    A right click, or a press that lasts HOLD_MS, opens a menu with further ways to send.
    """

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._choices: Sequence[QAction] = ()
        self._hold = QTimer(self, singleShot=True, interval=HOLD_MS)
        self._hold.timeout.connect(self._open_choices)
        self.pressed.connect(self._hold.start)
        self.released.connect(self._hold.stop)
        theme.zoomed.connect(self._fit)
        self._fit()
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click keeps the focus in the text field
        theme.changed.connect(self.update)
        self._send_key = send_key(return_sends=True)
        self._note = ""  # further line of the tooltip
        self.set_state(SendState.SEND, enabled=False)

    def set_send_key(self, key: str) -> None:
        """Set the shortcut shown in the tooltip."""
        self._send_key = key
        self.set_state(self._state, enabled=self.isEnabled())

    def set_note(self, note: str) -> None:
        """Set a further line of the tooltip, about what a message follows. Empty for none."""
        if note == self._note:
            return
        self._note = note
        self.set_state(self._state, enabled=self.isEnabled())

    def set_choices(self, choices: Sequence[QAction]) -> None:
        """Set the entries of the menu."""
        self._choices = choices

    def _open_choices(self) -> None:
        if self._state is SendState.SEND and self.isEnabled() and self._choices:
            self.setDown(False)  # no click follows
            menu = Menu(self)
            menu.addActions(self._choices)
            pop_up(menu, self.mapToGlobal(QPoint(0, 0)) - QPoint(0, menu.sizeHint().height()))

    @override
    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self._open_choices()

    def _fit(self) -> None:
        self.setFixedSize(self.sizeHint())
        self.update()

    @property
    def state(self) -> SendState:
        return self._state

    def set_state(self, state: SendState, *, enabled: bool) -> None:
        self._state = state
        self.setEnabled(enabled)
        self.setAccessibleName(state)
        key = self._send_key if state is SendState.SEND else _ESCAPE
        self.setToolTip(f"{state}  {key}\n{self._note}".strip())
        self.setAccessibleDescription(self._note)
        self.update()

    @override
    def sizeHint(self) -> QSize:
        side = self._theme.scaled(Size.CONTROL_LARGE, MAX_ZOOM)
        return QSize(side, side)

    @override
    def paintEvent(self, e: QPaintEvent) -> None:
        colors = self._theme.colors
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(colors.send if self.isEnabled() else colors.disabled))
        disc = QRectF(self.rect())
        painter.drawEllipse(disc)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(colors.send_glyph), Space.HAIR))
            inset = Space.HAIR * 1.5  # leaves a rim of the disc visible outside the focus ring
            painter.drawEllipse(disc.adjusted(inset, inset, -inset, -inset))
        icon = Icon.STOP if self._state is SendState.STOP else Icon.SEND
        size = self._theme.scaled(GRID, MAX_ZOOM)
        rect = QRectF(0, 0, size, size)
        rect.moveCenter(disc.center())
        self._theme.icons.paint(painter, icon, colors.send_glyph, rect)
