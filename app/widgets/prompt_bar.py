"""A painted bar of a prompt, divided by the origin of its tokens. Main thread."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from app.theme.palette import Theme
from app.theme.tokens import Colors, Radius, Size, Space
from app.viewmodels.read_reasons import PromptPart, TokenOrigin

_LEAST = 4.0  # width of a part with few tokens, in px


class PromptBar(QWidget):
    """The bar. Screen readers get the labels of its parts as its name."""

    def __init__(self, theme: Theme, parts: Sequence[PromptPart], parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._parts = parts
        self.setAccessibleName(", ".join(part.label for part in parts))
        theme.changed.connect(self.update)

    @override
    def sizeHint(self) -> QSize:
        return QSize(Size.NAME_WIDTH, round(Space.L * max(1.0, self._theme.zoom)))

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        outline = QPainterPath()
        outline.addRoundedRect(QRectF(self.rect()), Radius.ROW, Radius.ROW)
        painter.setClipPath(outline)
        left = 0.0
        widths = part_widths([part.num_tokens for part in self._parts], self.width())
        for part, width in zip(self._parts, widths, strict=True):
            rect = QRectF(left, 0, width, self.height())
            painter.fillRect(rect, QColor(origin_ink(self._theme.colors, part.origin)))
            left += width + Space.HAIR


def part_widths(counts: Sequence[int], width: float) -> list[float]:
    """Return the widths of the parts, in proportion to their tokens, with gaps between them.

    A part with few tokens is _LEAST wide at least. The others give it the room.
    """
    room = width - Space.HAIR * (len(counts) - 1)
    least = min(_LEAST, room / max(1, len(counts)))
    small = [count * room < least * sum(counts) for count in counts]
    num_large = sum(count for count, is_small in zip(counts, small, strict=True) if not is_small)
    left = room - least * sum(small)
    return [
        least if is_small else left * count / num_large
        for count, is_small in zip(counts, small, strict=True)
    ]


def origin_ink(colors: Colors, origin: TokenOrigin) -> str:
    """Return the colour of a part of the bar, and of its dot."""
    match origin:
        case TokenOrigin.MEMORY:
            return colors.instant.ink
        case TokenOrigin.DISK:
            return colors.on_disk.ink
        case TokenOrigin.AGAIN:
            return colors.must_read.ink
        case TokenOrigin.FIRST:
            return colors.tertiary
        case TokenOrigin.LEFT:
            return colors.strong_line
