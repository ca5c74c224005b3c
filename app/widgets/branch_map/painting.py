"""Painting of the branch map: the part in an area, in slices of rows. Main thread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from PySide6.QtCore import QLineF, QPoint, QPointF, QRect, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QFontMetrics,
    QPainter,
    QPainterPath,
    QPen,
    QPolygonF,
    QStaticText,
)

from app.conversation.tree import NodeId
from app.theme.palette import Theme
from app.theme.tokens import Radius, Space, Type
from app.viewmodels.branch_cost import BranchCost, BranchState
from app.viewmodels.branch_map import BranchMap
from app.viewmodels.direction import isolated
from app.widgets.branch_map.geometry import MapGeometry
from app.words import branches as words
from engine.types import Role

_LINE, _LINE_ON_SHOW = 1.5, 2.5  # widths in px
_MIN_SHAPE = 3.0  # radius in px; a smaller message is a point
_MIN_LABEL = 40  # px; less room for text than this stays empty
_BADGE = 8.0  # radius of the letter of a selected branch
LETTERS = (words.FIRST_MARK, words.SECOND_MARK)


@dataclass(slots=True)
class MapMarks:
    """The messages with a mark. They change more often than the map."""

    current: NodeId | None = None  # the message that keys act on
    here: NodeId | None = None  # the message at the top of the transcript
    selected: list[NodeId] = field(default_factory=list[NodeId])  # to compare; two at most
    costs: Mapping[NodeId, BranchCost] = field(default_factory=dict[NodeId, BranchCost])


class MapPainter:
    """Paints one map at one zoom.

    Texts are laid out once, because that takes half of the time of a frame.
    """

    def __init__(
        self, theme: Theme, branches: BranchMap, geometry: MapGeometry, marks: MapMarks
    ) -> None:
        self._theme = theme
        self._map = branches
        self._geometry = geometry
        self._marks = marks
        self._font = theme.zoomed_font(Type.UI)
        self._metrics = QFontMetrics(self._font)
        self._texts: dict[tuple[str, int], tuple[QStaticText, int]] = {}

    def paint(self, painter: QPainter, area: QRect, *, has_focus: bool) -> None:
        """Paint an area of the map. The origin of `painter` is the map's top left corner."""
        self._painter, geometry = painter, self._geometry
        painter.fillRect(area, QColor(self._theme.colors.canvas))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, geometry.zoom.radius >= _MIN_SHAPE)
        painter.setFont(self._font)
        rows = [(row, tuple(geometry.seen(row, area))) for row in geometry.rows(area)]
        self._paint_lines(rows)
        if geometry.zoom.radius < _MIN_SHAPE:
            self._paint_points(node_id for _, seen in rows for node_id, _, _ in seen)
            return
        for row, seen in rows:
            for node_id, column, after in seen:
                rect = geometry.room(row, column, after)
                if rect.right() >= area.left() - Space.XL:
                    self._paint_message(node_id, rect, has_focus=has_focus)

    def _paint_points(self, node_ids: Iterable[NodeId]) -> None:
        """Paint the messages of an overview as points, and marks around a few of them."""
        radius, marks, colors = self._geometry.zoom.radius, self._marks, self._theme.colors
        around = QRectF(-radius, -radius, 2 * radius, 2 * radius)
        points: dict[str, list[QRectF]] = {}
        marked: list[NodeId] = []
        for node_id in node_ids:
            cost = marks.costs.get(node_id)
            shown = colors.text if node_id in self._map.shown else colors.secondary
            color = shown if cost is None else self._ink(cost)
            center = QPointF(self._geometry.center(node_id))
            points.setdefault(color, []).append(around.translated(center))
            if node_id in (marks.here, marks.current, *marks.selected):
                marked.append(node_id)
        self._painter.setPen(Qt.PenStyle.NoPen)
        for color, rects in points.items():
            self._painter.setBrush(QColor(color))
            self._painter.drawRects(rects)
        self._painter.setBrush(Qt.BrushStyle.NoBrush)
        self._painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for node_id in marked:
            self._paint_message(node_id, self._geometry.rect(node_id), has_focus=True)

    def _paint_lines(self, rows: list[tuple[int, tuple[tuple[NodeId, int, int], ...]]]) -> None:
        colors, children = self._theme.colors, self._map.conversation.children
        plain: list[QLineF] = []
        on_show: list[QLineF] = []
        roots = children.get(None, ())
        if rows and rows[0][0] == 0 and len(roots) > 1:
            self._add_lines(roots[0], roots, plain, on_show, from_top=True)
        for _row, seen in rows:
            for node_id, _column, _after in seen:
                below = children.get(node_id)
                if below:
                    self._add_lines(node_id, below, plain, on_show)
        for lines, color, width in (
            (plain, colors.border, _LINE),
            (on_show, colors.text, _LINE_ON_SHOW),
        ):
            if self._geometry.zoom.radius < Space.HAIR:
                width /= 2
            self._painter.setPen(QPen(QColor(color), width))
            self._painter.drawLines(lines)

    def _add_lines(
        self,
        node_id: NodeId,
        below: tuple[NodeId, ...],
        plain: list[QLineF],
        on_show: list[QLineF],
        *,
        from_top: bool = False,
    ) -> None:
        """Add the lines from a message to those below it, or from one point above the first ones.

        A line to the message on show takes the place of the others where they share the way.
        """
        geometry, shown = self._geometry, self._map.shown
        places, row = geometry.layout.places, geometry.zoom.row
        center = geometry.center(node_id)
        x, y = center.x(), center.y() - from_top * row
        middle, bottom = y + row / 2, y + row
        ends = [geometry.x(places[child].column) for child in below]
        split = next((end for end, child in zip(ends, below, strict=True) if child in shown), None)
        if not from_top:
            (plain if split is None else on_show).append(QLineF(x, y, x, middle))
        if split is not None and split > x:
            on_show.append(QLineF(x, middle, split, middle))
        begin = x if split is None else split
        if ends[-1] > begin:
            plain.append(QLineF(begin, middle, ends[-1], middle))
        for end, child in zip(ends, below, strict=True):
            (on_show if child in shown else plain).append(QLineF(end, middle, end, bottom))

    def _paint_message(self, node_id: NodeId, rect: QRect, *, has_focus: bool) -> None:
        marks, center = self._marks, self._geometry.center(node_id)
        if node_id == marks.here:
            self._paint_pointer(center)
        if node_id in marks.selected:
            self._paint_badge(center, LETTERS[marks.selected.index(node_id)])
        else:
            self._paint_node(node_id, QPointF(center))
        if self._geometry.zoom.has_text:
            self._paint_texts(node_id, rect)
        if node_id == marks.current:
            self._paint_ring(rect, center, has_focus=has_focus)

    def _paint_node(self, node_id: NodeId, center: QPointF) -> None:
        painter, colors = self._painter, self._theme.colors
        radius = self._geometry.zoom.radius
        cost = self._marks.costs.get(node_id)
        is_shown = node_id in self._map.shown
        is_square = self._map.role(node_id) is Role.USER
        # A ring of the background keeps the lines away from the outline.
        painter.fillPath(
            _shape(center, radius + Space.HAIR, is_square=is_square), QColor(colors.canvas)
        )
        shape = _shape(center, radius, is_square=is_square)
        if cost is None:
            color = QColor(colors.text if is_shown else colors.secondary)
            if is_shown:
                painter.fillPath(shape, color)
            painter.strokePath(shape, QPen(color, _LINE))
            return
        color = QColor(self._ink(cost))
        if cost.state is BranchState.MEMORY:
            painter.fillPath(shape, color)
        elif cost.state is BranchState.DISK:
            lower = shape.boundingRect().adjusted(-1, radius, 1, 1)
            painter.save()
            painter.setClipRect(lower, Qt.ClipOperation.IntersectClip)
            painter.fillPath(shape, color)
            painter.restore()
        dotted = cost.state is BranchState.UNREAD
        style = Qt.PenStyle.DotLine if dotted else Qt.PenStyle.SolidLine
        painter.strokePath(shape, QPen(color, Space.HAIR, style))

    def _paint_texts(self, node_id: NodeId, rect: QRect) -> None:
        colors, metrics = self._theme.colors, self._metrics
        cost = self._marks.costs.get(node_id)
        room = rect.adjusted(
            2 * round(self._geometry.zoom.radius) + Space.S + Space.XS, 0, -Space.XS, 0
        )
        if room.width() < _MIN_LABEL:
            return
        price = "" if cost is None else cost.text
        wanted = metrics.horizontalAdvance(price) + Space.M if price else 0
        if cost is not None and wanted > room.width() / 2:
            price = cost.short
            wanted = metrics.horizontalAdvance(price) + Space.M
        if room.width() - wanted < _MIN_LABEL:
            wanted = room.width()
        label_room = room.adjusted(0, 0, -wanted, 0)
        if label_room.width() >= _MIN_LABEL:
            color = colors.text if node_id in self._map.shown else colors.secondary
            taken = self._write(label_room, self._map.label(node_id), color)
            room.setLeft(room.left() + taken + Space.M)
        if cost is not None:
            self._write(room, price, self._ink(cost))

    def _write(self, room: QRect, text: str, color: str) -> int:
        """Write a text, elided to its room. Return its width."""
        known = self._texts.get((text, room.width()))
        if known is None:
            known = self._texts[text, room.width()] = self._laid_out(text, room.width())
        self._painter.setPen(QColor(color))
        top = room.top() + (room.height() - self._metrics.height()) // 2
        self._painter.drawStaticText(room.left(), top, known[0])
        return known[1]

    def _laid_out(self, text: str, width: int) -> tuple[QStaticText, int]:
        shown = self._metrics.elidedText(text, Qt.TextElideMode.ElideRight, width)
        laid_out = QStaticText(isolated(shown))
        laid_out.setTextFormat(Qt.TextFormat.PlainText)
        laid_out.setPerformanceHint(QStaticText.PerformanceHint.AggressiveCaching)
        laid_out.prepare(font=self._font)
        return laid_out, self._metrics.horizontalAdvance(shown)

    def _paint_pointer(self, center: QPoint) -> None:
        """Paint an arrow at the left of the message at which the transcript stands."""
        size = max(3.0, self._geometry.zoom.radius)
        tip = QPointF(center.x() - self._geometry.zoom.radius - Space.XS, center.y())
        back = tip.x() - 1.4 * size
        arrow = QPolygonF([tip, QPointF(back, tip.y() - size), QPointF(back, tip.y() + size)])
        self._painter.setPen(Qt.PenStyle.NoPen)
        self._painter.setBrush(QColor(self._theme.colors.accent))
        self._painter.drawPolygon(arrow)
        self._painter.setBrush(Qt.BrushStyle.NoBrush)

    def _paint_badge(self, center: QPoint, letter: str) -> None:
        painter, colors = self._painter, self._theme.colors
        has_room = self._geometry.zoom.row >= 2 * _BADGE
        radius = _BADGE if has_room else max(3.0, self._geometry.zoom.radius)
        around = QRectF(center.x() - radius, center.y() - radius, 2 * radius, 2 * radius)
        ground = _shape(QPointF(center), radius + Space.HAIR, is_square=False)
        painter.fillPath(ground, QColor(colors.canvas))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(colors.accent))
        painter.drawEllipse(around)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if has_room:
            painter.save()
            painter.setFont(self._theme.fonts.font(Type.SECTION))
            painter.setPen(QColor(colors.on_accent))
            painter.drawText(around, Qt.AlignmentFlag.AlignCenter, letter)
            painter.restore()

    def _paint_ring(self, rect: QRect, center: QPoint, *, has_focus: bool) -> None:
        colors = self._theme.colors
        ring = QRectF(rect).adjusted(1, 1, -1, -1)
        if not self._geometry.zoom.has_text:
            radius = max(Space.S, self._geometry.zoom.radius + Space.XS)
            ring = QRectF(center.x() - radius, center.y() - radius, 2 * radius, 2 * radius)
        self._painter.setPen(
            QPen(QColor(colors.accent if has_focus else colors.border), Space.HAIR)
        )
        self._painter.drawRoundedRect(ring, Radius.ROW, Radius.ROW)

    def _ink(self, cost: BranchCost) -> str:
        colors = self._theme.colors
        inks = {
            BranchState.MEMORY: colors.instant,
            BranchState.DISK: colors.on_disk,
            BranchState.UNREAD: colors.must_read,
        }
        return inks[cost.state].ink


def _shape(center: QPointF, radius: float, *, is_square: bool) -> QPainterPath:
    shape = QPainterPath()
    around = QRectF(center.x() - radius, center.y() - radius, 2 * radius, 2 * radius)
    if is_square:
        shape.addRoundedRect(around, radius / 3, radius / 3)
    else:
        shape.addEllipse(around)
    return shape
