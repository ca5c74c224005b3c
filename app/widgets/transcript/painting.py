"""Painting of the visible messages. Main thread only."""

from __future__ import annotations

from PySide6.QtCore import QRect
from PySide6.QtGui import QColor, QPainter

from app.widgets.transcript.input.pointer import Pointer
from app.widgets.transcript.input.target_focus import TargetFocus
from app.widgets.transcript.layout.placement import ScrollAnchor
from app.widgets.transcript.layout.stack import MessageStack
from app.widgets.transcript.layout.text_selection import TextSelection
from app.widgets.transcript.messages.places import MessagePaint
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.row import TranscriptRow


class TranscriptPainter:
    """Paints the viewport: background, visible messages and focus ring."""

    def __init__(
        self,
        stack: MessageStack,
        placement: ScrollAnchor,
        pointer: Pointer,
        selection: TextSelection,
        focus: TargetFocus,
    ) -> None:
        self._stack = stack
        self._placement = placement
        self._pointer = pointer
        self._selection = selection
        self._focus = focus

    def paint(
        self, painter: QPainter, area: QRect, look: Look, unfinished: dict[TranscriptRow, None]
    ) -> None:
        """Paint an area of the viewport.

        Painted rows that still need idle work, such as code without colours, are added to
        `unfinished`.
        """
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(area, QColor(look.colors.canvas))
        pointer, left, scroll = self._pointer, self._placement.column_left, self._placement.top
        selection = self._selection.value
        for index in self._stack.visible(area.top() + scroll, area.height()):
            y = self._stack.top(index) - scroll
            painter.translate(left, y)
            self._stack.layouts[index].paint(
                MessagePaint(
                    painter=painter,
                    top=area.top() - y,
                    bottom=area.bottom() + 1 - y,
                    selected=None if selection is None else selection.within(index),
                    hovered=pointer.hovered,
                    confirmed=pointer.confirmed,
                    pointed_at=index in (pointer.message, self._focus.message),
                    unfinished=unfinished,
                )
            )
            painter.translate(-left, -y)
        self._focus.paint(painter, look)
