"""Positions in the branch map: from rows and columns to pixels, at each zoom."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QRect, QSize

from app.conversation.tree import NodeId
from app.theme.tokens import Space
from app.viewmodels.branch_layout import BranchLayout


@dataclass(frozen=True, slots=True)
class MapZoom:
    """Sizes in pixels at one zoom. Places without text stand closer together."""

    column: int
    row: int
    radius: float  # of a message
    has_text: bool


ZOOMS = (
    MapZoom(column=8, row=4, radius=1.5, has_text=False),
    MapZoom(column=14, row=10, radius=3, has_text=False),
    MapZoom(column=24, row=20, radius=5, has_text=False),
    MapZoom(column=208, row=28, radius=5, has_text=True),
    MapZoom(column=320, row=34, radius=6, has_text=True),
)
NORMAL_ZOOM = 3
MARGIN = Space.XL  # around the map


@dataclass(frozen=True, slots=True)
class MapGeometry:
    """The places of a map at a zoom. Positions are in the whole map, from its top left corner."""

    layout: BranchLayout
    zoom: MapZoom

    @property
    def size(self) -> QSize:
        # The texts of the last column have the room of two.
        num_columns = self.layout.num_columns + self.zoom.has_text
        width = num_columns * self.zoom.column + 2 * MARGIN
        return QSize(width, len(self.layout.rows) * self.zoom.row + 2 * MARGIN)

    def center(self, node_id: NodeId) -> QPoint:
        place = self.layout.places[node_id]
        return QPoint(self.x(place.column), self.y(place.row))

    def x(self, column: int) -> int:
        return MARGIN + column * self.zoom.column + round(self.zoom.radius)

    def y(self, row: int) -> int:
        return MARGIN + row * self.zoom.row + self.zoom.row // 2

    def rows(self, area: QRect) -> range:
        """Return the rows of which a part or a line is in an area."""
        first = (area.top() - MARGIN) // self.zoom.row - 1
        last = (area.bottom() - MARGIN) // self.zoom.row + 1
        return range(max(0, first), min(len(self.layout.rows), last + 1))

    def seen(self, row: int, area: QRect) -> Iterator[tuple[NodeId, int, int]]:
        """Yield the messages of a row in an area, as BranchLayout.seen() does."""
        first = (area.left() - MARGIN) // self.zoom.column - 1
        last = (area.right() - MARGIN) // self.zoom.column + 1
        return self.layout.seen(row, first, last)

    def rect(self, node_id: NodeId) -> QRect:
        """Return the place of a message, with the text beside it."""
        place = self.layout.places[node_id]
        after = self.layout.beside(node_id, 1)
        next_column = -1 if after is None else self.layout.places[after].column
        return self.room(place.row, place.column, next_column)

    def room(self, row: int, column: int, next_column: int) -> QRect:
        """Return the room that a message has in its row. next_column: of the next one, or -1."""
        zoom = self.zoom
        width = zoom.column
        if zoom.has_text and next_column > column:
            width = min(2, next_column - column) * zoom.column
        elif zoom.has_text:
            width = 2 * zoom.column
        top = MARGIN + row * zoom.row
        reach = round(zoom.radius) + Space.XS
        left = self.x(column) - reach
        return QRect(left, top, width - Space.S if zoom.has_text else 2 * reach, zoom.row)

    def at(self, point: QPoint) -> NodeId | None:
        """Return the message at a position, or None."""
        row = (point.y() - MARGIN) // self.zoom.row
        if not 0 <= row < len(self.layout.rows):
            return None
        reach = round(self.zoom.radius) + Space.XS
        column = (point.x() + reach - MARGIN - round(self.zoom.radius)) // self.zoom.column
        at = self.layout.before(row, column)
        if at < 0:
            return None
        node_id = self.layout.rows[row][at]
        return node_id if self.rect(node_id).contains(point) else None
