"""Indentation of rows inside quotes and lists, and gaps between blocks. Main thread only.

Each row has an `Inset` for the quotes and lists that contain the row. The inset stores the width of
the indentation, and paints bars of quotes and markers of list items beside the row.
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from app.theme.icons import Icon
from app.theme.tokens import Space, Type
from app.viewmodels.blocks import Block, Container, FrameKind, TableBlock, TextBlock
from app.widgets.transcript.rows.look import Look

# The following lengths are in pixels at zoom 1.
_BAR = 3
_BULLET = 5
_BOX = 15
_QUOTE_INDENT = 19  # bar of 3 px and space of 16 px
_ITEM_INDENT = 26
_RTL_MARK = "\u200f"  # with this mark before and after "1.", Qt paints the dot left of the 1
_ITEMS = frozenset({FrameKind.BULLET, FrameKind.NUMBER, FrameKind.TASK})


@dataclass(frozen=True, slots=True)
class InsetArea:
    """The size of a row including its inset."""

    width: int
    height: int
    # Empty pixels above the row. If the previous block is in the same quote, the bar of the quote
    # is also painted in the gap.
    gap: int
    is_rtl: bool  # True for right-to-left text, which has its inset at the right


class Inset:
    """The indentation of a row, with the bars of quotes and the markers of list items.

    Each frame is a quote or list item that contains the row; the outermost frame is first. The
    inset is at the left of the row. For right-to-left text, it is at the right.
    """

    def __init__(self, look: Look, frames: tuple[Container, ...], joined: int) -> None:
        self._look = look
        self._frames = frames
        self._joined = joined  # number of outer frames that also contain the previous block
        self._indents = [look.px(_indent(frame)) for frame in frames]
        self.width = sum(self._indents)

    def paint(self, painter: QPainter, area: InsetArea) -> None:
        """Paint bars and markers. The origin of the painter is the top left corner of the area."""
        left = 0
        for depth, frame in enumerate(self._frames):
            if frame.kind is FrameKind.QUOTE:
                above = area.gap if depth < self._joined else 0
                thickness = self._look.px(_BAR)
                x = area.width - left - thickness if area.is_rtl else left
                bar = QRectF(x, -above, thickness, area.height + above)
                painter.fillRect(bar, QColor(self._look.colors.strong_line))
            left += self._indents[depth]
            if frame.opens:
                self._paint_marker(painter, area, frame, left, self._bullets_before(depth))

    def _bullets_before(self, depth: int) -> int:
        return sum(frame.kind is FrameKind.BULLET for frame in self._frames[:depth])

    def _paint_marker(
        self, painter: QPainter, area: InsetArea, frame: Container, edge: int, depth: int
    ) -> None:
        face = self._look.face(Type.BODY)
        middle = (
            face.baseline - face.font.pixelSize() * 0.27
        )  # vertical middle of lowercase letters
        painter.setPen(QColor(self._look.colors.secondary))
        match frame.kind:
            case FrameKind.NUMBER:
                painter.setFont(face.font)
                mark = _RTL_MARK if area.is_rtl else ""
                label = f"{mark}{frame.number}.{mark}"
                width = painter.fontMetrics().horizontalAdvance(label)
                x = _beside(area, edge, self._look.px(Space.S), width)
                painter.drawText(QPointF(x, face.baseline), label)
            case FrameKind.BULLET:
                x = _beside(area, edge, self._look.px(_BULLET * 3), 0)
                self._paint_bullet(painter, QPointF(x, middle), depth)
            case FrameKind.TASK:
                size = self._look.px(_BOX)
                x = _beside(area, edge, self._look.px(Space.S), size)
                self._paint_box(painter, frame, QRectF(x, middle - size / 2, size, size))
            case FrameKind.QUOTE:
                pass

    def _paint_bullet(self, painter: QPainter, center: QPointF, depth: int) -> None:
        ink = QColor(self._look.colors.secondary)
        radius = self._look.px(_BULLET) / 2
        hollow = depth % 2 == 1
        painter.setPen(QPen(ink, 1) if hollow else Qt.PenStyle.NoPen)
        painter.setBrush(Qt.BrushStyle.NoBrush if hollow else ink)
        painter.drawEllipse(center, radius, radius)

    def _paint_box(self, painter: QPainter, frame: Container, box: QRectF) -> None:
        colors = self._look.colors
        radius = self._look.px(Space.XS)
        if frame.checked:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(colors.secondary))
            painter.drawRoundedRect(box, radius, radius)
            self._look.icons.paint(painter, Icon.CHECK, colors.canvas, box.adjusted(2, 2, -2, -2))
        else:
            painter.setPen(QPen(QColor(colors.tertiary), 1.5))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(0.75, 0.75, -0.75, -0.75), radius, radius)


def _beside(area: InsetArea, edge: int, distance: int, width: float) -> float:
    """Return the x of a marker that is placed before the text of its list item.

    `edge` is the indentation of the text, and `distance` is the space between marker and text.
    """
    return area.width - edge + distance if area.is_rtl else edge - distance - width


def gap_between(look: Look, before: Block | None, block: Block) -> int:
    """Return the gap in pixels between `block` and the previous block `before`.

    Return 0 if `before` is None, or if `block` continues the table `before`.
    """
    if before is None or (isinstance(block, TableBlock) and block.continues):
        return 0
    return look.px(_gap(before, block))


def _gap(before: Block, block: Block) -> int:
    level, level_before = _level(block), _level(before)
    if level:
        return Space.XL if level < 3 else Space.L + Space.XS
    if level_before:
        return Space.S
    item = next((frame for frame in block.frames if frame.opens and frame.kind in _ITEMS), None)
    if item is None:
        return Space.M
    same_list = any(
        (frame.kind is FrameKind.NUMBER) == (item.kind is FrameKind.NUMBER)
        for frame in before.frames
        if frame.kind in _ITEMS
    )
    nested = block.joined > 0 and block.frames[block.joined - 1].kind in _ITEMS
    return Space.XS if same_list or nested else Space.S


def _level(block: Block) -> int:
    return block.level if isinstance(block, TextBlock) else 0


def _indent(frame: Container) -> int:
    return _QUOTE_INDENT if frame.kind is FrameKind.QUOTE else _ITEM_INDENT
