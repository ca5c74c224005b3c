"""Rows inside quotes and lists: indentation, bars and markers around another row. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen
from typing_extensions import override

from app.theme.icons import Icon
from app.theme.tokens import Space, Type
from app.viewmodels.blocks import Block, Frame, FrameKind, TextBlock
from app.widgets.transcript.rows.flow import Range
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.row import Hit, IdleResult, Paint, TranscriptRow

_BAR = 3
_BULLET = 5
_BOX = 15
_QUOTE_INDENT = 19  # the bar and 16 px
_ITEM_INDENT = 26
_RTL_MARK = "\u200f"  # around a number with its point: sets it on the other side
_ITEMS = frozenset({FrameKind.BULLET, FrameKind.NUMBER, FrameKind.TASK})


class FramedRow(TranscriptRow):
    """A row with the bars of its quotes and the markers of its list items."""

    def __init__(
        self, look: Look, inner: TranscriptRow, frames: tuple[Frame, ...], joined: int
    ) -> None:
        self.inner = inner
        self._look = look
        self._frames = frames
        self._joined = joined
        self._indents = [look.px(_indent(frame)) for frame in frames]
        self._indent = sum(self._indents)
        self._width = self._height = 0

    @override
    def estimate(self, width: int) -> int:
        return self.inner.estimate(max(1, width - self._indent))

    @override
    def measure(self, width: int) -> int:
        self._width = width
        self._height = self.inner.measure(max(1, width - self._indent))
        self.is_rtl = self.inner.is_rtl
        self.num_lines = self.inner.num_lines
        self.natural_width = self._indent + self.inner.natural_width
        return self._height

    @override
    def paint(self, paint: Paint) -> None:
        left = 0
        for depth, frame in enumerate(self._frames):
            if frame.kind is FrameKind.QUOTE:
                above = self.gap if depth < self._joined else 0
                thickness = self._look.px(_BAR)
                x = self._width - left - thickness if self.is_rtl else left
                bar = QRectF(x, -above, thickness, self._height + above)
                paint.painter.fillRect(bar, QColor(self._look.colors.strong_line))
            left += self._indents[depth]
            if frame.opens:
                self._paint_marker(paint.painter, frame, left, self._bullets_before(depth))
        paint.painter.translate(self._left, 0)
        self.inner.paint(paint)
        paint.painter.translate(-self._left, 0)

    @override
    def release(self) -> None:
        self.inner.release()

    @override
    def hits(self) -> list[Hit]:
        return [hit.translated(self._left, 0) for hit in self.inner.hits()]

    @override
    def hit(self, x: float, y: float) -> Hit | None:
        hit = self.inner.hit(x - self._left, y)
        return None if hit is None else hit.translated(self._left, 0)

    @property
    @override
    def group(self) -> str:
        return self.inner.group

    @property
    @override
    def is_waiting(self) -> bool:
        return self.inner.is_waiting

    @property
    @override
    def is_stale(self) -> bool:
        return self.inner.is_stale

    @property
    @override
    def text(self) -> str:
        return self.inner.text

    @property
    @override
    def file_name(self) -> str:
        return self.inner.file_name

    @override
    def copied(self, part: Range) -> str:
        return self.inner.copied(part)

    @override
    def position_at(self, x: float, y: float) -> int:
        return self.inner.position_at(x - self._left, y)

    @override
    def line_top(self, position: int) -> int:
        return self.inner.line_top(position)

    @override
    def end_rect(self) -> QRectF:
        return self.inner.end_rect().translated(self._left, 0)

    @override
    def update(self, block: Block) -> bool:
        return self.inner.update(block)

    @override
    def advance(self) -> IdleResult:
        return self.inner.advance()

    @override
    def reveal(self, part: Range) -> None:
        self.inner.reveal(part)

    @override
    def toggle_wrap(self) -> None:
        self.inner.toggle_wrap()

    @override
    def scroll_sideways(self, pixels: int) -> bool:
        return self.inner.scroll_sideways(pixels)

    @property
    def _left(self) -> int:
        """Where the row inside begins. What is read from the right has its frames there."""
        return 0 if self.is_rtl else self._indent

    def _beside(self, edge: int, distance: int, width: float) -> float:
        """The x of a marker at a distance from its text, which begins at an edge."""
        return self._width - edge + distance if self.is_rtl else edge - distance - width

    def _bullets_before(self, depth: int) -> int:
        return sum(frame.kind is FrameKind.BULLET for frame in self._frames[:depth])

    def _paint_marker(self, painter: QPainter, frame: Frame, edge: int, depth: int) -> None:
        face = self._look.face(Type.BODY)
        middle = face.baseline - face.font.pixelSize() * 0.27  # half the height of an x
        painter.setPen(QColor(self._look.colors.secondary))
        match frame.kind:
            case FrameKind.NUMBER:
                painter.setFont(face.font)
                mark = _RTL_MARK if self.is_rtl else ""
                label = f"{mark}{frame.number}.{mark}"
                width = painter.fontMetrics().horizontalAdvance(label)
                x = self._beside(edge, self._look.px(Space.S), width)
                painter.drawText(QPointF(x, face.baseline), label)
            case FrameKind.BULLET:
                x = self._beside(edge, self._look.px(_BULLET * 3), 0)
                self._paint_bullet(painter, QPointF(x, middle), depth)
            case FrameKind.TASK:
                self._paint_box(painter, frame, edge, middle)
            case FrameKind.QUOTE:
                pass

    def _paint_bullet(self, painter: QPainter, center: QPointF, depth: int) -> None:
        ink = QColor(self._look.colors.secondary)
        radius = self._look.px(_BULLET) / 2
        hollow = depth % 2 == 1
        painter.setPen(QPen(ink, 1) if hollow else Qt.PenStyle.NoPen)
        painter.setBrush(Qt.BrushStyle.NoBrush if hollow else ink)
        painter.drawEllipse(center, radius, radius)

    def _paint_box(self, painter: QPainter, frame: Frame, edge: int, middle: float) -> None:
        colors, size = self._look.colors, self._look.px(_BOX)
        x = self._beside(edge, self._look.px(Space.S), size)
        box = QRectF(x, middle - size / 2, size, size)
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


def gap_between(look: Look, before: Block | None, block: Block) -> int:
    """Return the empty space between two blocks of a message."""
    if before is None:
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


def _indent(frame: Frame) -> int:
    return _QUOTE_INDENT if frame.kind is FrameKind.QUOTE else _ITEM_INDENT
