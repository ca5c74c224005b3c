"""The background of a list row: hover, selection and focus. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QRect, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen
from PySide6.QtWidgets import QStyle

from app.theme.tokens import Colors, Radius, Space

_State = QStyle.StateFlag


def paint_row_ground(
    painter: QPainter, colors: Colors, rect: QRect, state: QStyle.StateFlag
) -> None:
    """Fill the background of a hovered or selected row; outline a selected or focused row."""
    selected, focused = state & _State.State_Selected, state & _State.State_HasFocus
    painter.setPen(Qt.PenStyle.NoPen)
    if selected or state & _State.State_MouseOver:
        painter.setBrush(QColor(colors.selected if selected else colors.hover))
        painter.drawRoundedRect(rect, Radius.ROW, Radius.ROW)
    if selected or focused:
        line = colors.accent if focused else colors.selection_line
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(line), Space.HAIR))
        ring = QRectF(rect).adjusted(1, 1, -1, -1)
        painter.drawRoundedRect(ring, Radius.ROW - 1, Radius.ROW - 1)
