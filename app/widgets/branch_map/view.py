"""The painted branch map: scrolling, zoom, mouse, keys, and screen readers. Main thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from PySide6.QtCore import QEvent, QPoint, QRect, Qt, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QWidget
from typing_extensions import override

from app.conversation.tree import Conversation, NodeId
from app.theme.palette import Theme
from app.theme.tokens import Type
from app.viewmodels.branch_cost import BranchCost
from app.viewmodels.branch_map import BranchMap
from app.widgets.branch_map.access import MapCanvas
from app.widgets.branch_map.geometry import NORMAL_ZOOM, ZOOMS, MapGeometry
from app.widgets.branch_map.painting import LETTERS, MapMarks, MapPainter
from app.widgets.tips import show_tip
from app.words import branches as words
from engine.types import ConversationId

_KEPT_SELECTED = 2
_NOTHING = Conversation(conversation_id=ConversationId(""), created_at=0, updated_at=0)
_TOGGLES = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
_ALT = Qt.KeyboardModifier.AltModifier


class BranchMapView(QAbstractScrollArea):
    """The map of one conversation."""

    chosen = Signal(str)  # argument: the NodeId of a message to show in the chat
    moved = Signal()  # another message is current, or others are selected
    delete_requested = Signal()  # the Delete key
    menu_requested = Signal(QPoint)  # argument: position on the screen; the menu is about `current`
    rested = Signal()  # other messages have become visible

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._step = NORMAL_ZOOM
        self._pressed: NodeId | None = None
        self._dragged: QPoint | None = None  # position of the pointer that moves the map
        self.marks = MapMarks()
        self.branches = BranchMap(_NOTHING)
        self.canvas = MapCanvas(self, self)
        self.setViewport(self.canvas)
        self.canvas.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.canvas.setMouseTracking(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(words.MAP)
        for bar in (self.horizontalScrollBar(), self.verticalScrollBar()):
            bar.valueChanged.connect(self.rested)
        theme.changed.connect(self.canvas.update)
        theme.zoomed.connect(self._on_zoomed)
        self._geometry = self._make_geometry()
        self._painter = self._make_painter()

    # Content

    def show_conversation(self, conversation: Conversation) -> None:
        """Show a map. If it is of the same conversation, the current message stays in its place."""
        before, place = self.marks.current, self._current_place()
        is_same = conversation.conversation_id == self.branches.conversation.conversation_id
        known = self.branches.conversation.nodes
        self.branches = BranchMap(conversation)
        self._geometry = self._make_geometry()
        if not is_same:
            self.marks = MapMarks()
        self.marks.selected = [one for one in self.marks.selected if one in self.branches]
        current = before if is_same else None
        while current is not None and current not in self.branches:
            current = known[current].parent
        self.marks.current = current or self.branches.end_on_show
        self._painter = self._make_painter()
        self._fit_bars()
        if is_same and place is not None and current is not None:
            self._scroll_to(self._geometry.center(current) - place)
        self._announce()

    def show_costs(self, costs: Mapping[NodeId, BranchCost]) -> None:
        self.marks.costs = costs
        self.canvas.update()

    def set_here(self, node_id: NodeId | None) -> None:
        """Mark the message at which the transcript stands."""
        if node_id != self.marks.here:
            self.marks.here = node_id
            self.canvas.update()

    @property
    def current(self) -> NodeId | None:
        return self.marks.current

    def set_current(self, node_id: NodeId | None) -> None:
        """Make a message the one that keys act on, and scroll to it if it is out of sight."""
        if node_id is None or node_id not in self.branches:
            return
        self.marks.current = node_id
        self._reveal(self._geometry.rect(node_id))
        self._announce()

    def toggle_selected(self, node_id: NodeId | None) -> None:
        """Select a message to compare its branch, or deselect it. The last two stay selected."""
        if node_id is None:
            return
        selected = self.marks.selected
        if node_id in selected:
            selected.remove(node_id)
        else:
            selected.append(node_id)
        del selected[:-_KEPT_SELECTED]
        self._announce()

    def center_on(self, node_id: NodeId | None) -> None:
        """Scroll a message to the middle of the height, and to the right only as far as needed."""
        if node_id is not None and node_id in self.branches:
            middle = self._geometry.center(node_id).y() - self.canvas.height() // 2
            self._scroll_to(QPoint(0, middle))
            self._reveal(self._geometry.rect(node_id))

    def change_zoom(self, step: int) -> None:
        """Zoom in (1), out (-1), or to the usual zoom (0). The current message keeps its place."""
        wanted = NORMAL_ZOOM if step == 0 else self._step + step
        self._step = max(0, min(len(ZOOMS) - 1, wanted))
        self._on_zoomed()

    def can_zoom(self, step: int) -> bool:
        return 0 <= self._step + step < len(ZOOMS)

    @property
    def visible_ends(self) -> list[NodeId]:
        """The ends of branches that are in sight and whose answer is not being written."""
        area, ends = self._area, self.branches.ends
        return [
            node_id
            for row in self._geometry.rows(area)
            for node_id, column, after in self._geometry.seen(row, area)
            if node_id in ends
            and not self.branches.is_being_written(node_id)
            and self._geometry.room(row, column, after).intersects(area)
        ]

    def place_of(self, node_id: NodeId) -> QPoint:
        """Return the position of a message in the canvas."""
        return self._geometry.center(node_id) - self._area.topLeft()

    # MapReader, for screen readers

    def num_items(self) -> int:
        return len(self.branches.order)

    def item_name(self, index: int) -> str:
        node_id, marks = self.branches.order[index], self.marks
        name = self.branches.spoken(node_id)
        states = [words.ON_SHOW] * (node_id in self.branches.shown)
        states += [words.HERE] * (node_id == marks.here)
        states += [LETTERS[at] for at, one in enumerate(marks.selected) if one == node_id]
        return ", ".join([name, *states])

    def item_value(self, index: int) -> str:
        cost = self.marks.costs.get(self.branches.order[index])
        return "" if cost is None else cost.text

    def item_rect(self, index: int) -> QRect:
        rect = self._geometry.rect(self.branches.order[index])
        return rect.translated(-self._area.topLeft())

    def item_at(self, x: int, y: int) -> int:
        node_id = self._at(QPoint(x, y))
        return -1 if node_id is None else self.branches.order.index(node_id)

    def focused_item(self) -> int:
        if not self.hasFocus() or self.current is None:
            return -1
        return self.branches.order.index(self.current)

    def is_item_selected(self, index: int) -> bool:
        return self.branches.order[index] in self.marks.selected

    def go_to_item(self, index: int) -> None:
        self.set_current(self.branches.order[index])
        self.chosen.emit(self.branches.order[index])

    # Events

    @override
    def paintEvent(self, arg__1: QPaintEvent) -> None:
        painter = QPainter(self.canvas)
        origin = self._area.topLeft()
        painter.translate(-origin)
        area = arg__1.rect().translated(origin)
        self._painter.paint(painter, area, has_focus=self.hasFocus())
        painter.end()

    @override
    def scrollContentsBy(self, dx: int, dy: int) -> None:
        """Move what is painted, so that only the rest is painted again."""
        self.canvas.scroll(dx, dy)

    @override
    def resizeEvent(self, arg__1: QResizeEvent) -> None:
        super().resizeEvent(arg__1)
        self._fit_bars()
        self.rested.emit()

    @override
    def focusInEvent(self, arg__1: QFocusEvent) -> None:
        super().focusInEvent(arg__1)
        self.canvas.update()
        self.canvas.announce_focus()

    @override
    def focusOutEvent(self, arg__1: QFocusEvent) -> None:
        super().focusOutEvent(arg__1)
        self.canvas.update()

    @override
    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            node_id = self._at(event.pos())
            cost = None if node_id is None else self.marks.costs.get(node_id)
            price = "" if cost is None else cost.text
            tip = "" if node_id is None else self.branches.tip(node_id, price)
            show_tip(self.canvas, event.globalPos(), tip)
            return True
        return super().viewportEvent(event)

    @override
    def mousePressEvent(self, arg__1: QMouseEvent) -> None:
        point = arg__1.position().toPoint()
        self._pressed = self._at(point)
        if self._pressed is not None:
            # Without scrolling: the message must still be there when the button is released.
            self.marks.current = self._pressed
            self._announce()
        elif arg__1.button() is Qt.MouseButton.LeftButton:
            self._dragged = arg__1.globalPosition().toPoint()

    @override
    def mouseMoveEvent(self, arg__1: QMouseEvent) -> None:
        if self._dragged is not None:
            at = arg__1.globalPosition().toPoint()
            self._scroll_to(self._area.topLeft() + self._dragged - at)
            self._dragged = at
            return
        has_message = self._at(arg__1.position().toPoint()) is not None
        shape = Qt.CursorShape.PointingHandCursor if has_message else Qt.CursorShape.ArrowCursor
        self.canvas.setCursor(shape)

    @override
    def mouseReleaseEvent(self, arg__1: QMouseEvent) -> None:
        pressed, self._pressed, self._dragged = self._pressed, None, None
        is_left = arg__1.button() is Qt.MouseButton.LeftButton
        if not is_left or pressed is None or pressed != self._at(arg__1.position().toPoint()):
            return
        if arg__1.modifiers() & _TOGGLES:
            self.toggle_selected(pressed)
        else:
            self.chosen.emit(pressed)

    @override
    def contextMenuEvent(self, arg__1: QContextMenuEvent) -> None:
        is_key = arg__1.reason() is QContextMenuEvent.Reason.Keyboard
        if is_key and self.current is not None:
            self.menu_requested.emit(self.canvas.mapToGlobal(self.place_of(self.current)))
        elif not is_key and (node_id := self._at(arg__1.pos())) is not None:
            self.set_current(node_id)
            self.menu_requested.emit(arg__1.globalPos())

    @override
    def wheelEvent(self, arg__1: QWheelEvent) -> None:
        if arg__1.modifiers() & Qt.KeyboardModifier.ControlModifier:
            turned = arg__1.angleDelta().y()
            if turned:
                self.change_zoom(1 if turned > 0 else -1)
            arg__1.accept()
        else:
            super().wheelEvent(arg__1)

    @override
    def keyPressEvent(self, arg__1: QKeyEvent) -> None:
        key, current = Qt.Key(arg__1.key()), self.current
        if current is None or not self._press(key, current, arg__1.modifiers()):
            super().keyPressEvent(arg__1)

    def _press(self, key: Qt.Key, current: NodeId, held: Qt.KeyboardModifier) -> bool:
        """Handle a key. Return False if the map has no use for it."""
        branches = self.branches
        match key:
            case Qt.Key.Key_Up | Qt.Key.Key_Down:
                step = -1 if key is Qt.Key.Key_Up else 1
                after = branches.above(current) if step < 0 else branches.below(current)
                self.set_current(branches.fork(current, step) if held & _ALT else after)
            case Qt.Key.Key_Left | Qt.Key.Key_Right:
                step = -1 if key is Qt.Key.Key_Left else 1
                self.set_current(branches.layout.beside(current, step))
            case Qt.Key.Key_Home:
                self.set_current(next(iter(branches.order), None))
            case Qt.Key.Key_End:
                self.set_current(branches.end_of(current))
            case Qt.Key.Key_Return | Qt.Key.Key_Enter:
                self.chosen.emit(current)
            case Qt.Key.Key_Space:
                self.toggle_selected(current)
            case Qt.Key.Key_Delete | Qt.Key.Key_Backspace:
                self.delete_requested.emit()
            case Qt.Key.Key_Plus | Qt.Key.Key_Equal | Qt.Key.Key_Minus | Qt.Key.Key_0:
                self.change_zoom({Qt.Key.Key_Minus: -1, Qt.Key.Key_0: 0}.get(key, 1))
            case _:
                return False
        return True

    # Places

    @property
    def _area(self) -> QRect:
        """The part of the map that is in sight."""
        corner = QPoint(self.horizontalScrollBar().value(), self.verticalScrollBar().value())
        return QRect(corner, self.canvas.size())

    def _at(self, point: QPoint) -> NodeId | None:
        return self._geometry.at(point + self._area.topLeft())

    def _current_place(self) -> QPoint | None:
        """Return the position of the current message in the canvas."""
        return None if self.current is None else self.place_of(self.current)

    def _make_geometry(self) -> MapGeometry:
        zoom = ZOOMS[self._step]
        if zoom.has_text:
            row = max(zoom.row, self._theme.scaled(Type.UI.line) + zoom.row - Type.UI.line)
            zoom = replace(zoom, row=row, column=self._theme.scaled(zoom.column))
        return MapGeometry(self.branches.layout, zoom)

    def _make_painter(self) -> MapPainter:
        return MapPainter(self._theme, self.branches, self._geometry, self.marks)

    def _on_zoomed(self) -> None:
        place = self._current_place()
        self._geometry = self._make_geometry()
        self._painter = self._make_painter()
        self._fit_bars()
        if place is not None and self.current is not None:
            self._scroll_to(self._geometry.center(self.current) - place)
            self._reveal(self._geometry.rect(self.current))
        self.canvas.update()
        self.moved.emit()
        self.rested.emit()

    def _fit_bars(self) -> None:
        size, zoom = self._geometry.size, self._geometry.zoom
        for bar, whole, room, line in (
            (self.horizontalScrollBar(), size.width(), self.canvas.width(), zoom.column),
            (self.verticalScrollBar(), size.height(), self.canvas.height(), zoom.row),
        ):
            bar.setRange(0, max(0, whole - room))
            bar.setPageStep(room)
            bar.setSingleStep(min(line, Type.BODY.line))

    def _scroll_to(self, corner: QPoint) -> None:
        self.horizontalScrollBar().setValue(corner.x())
        self.verticalScrollBar().setValue(corner.y())

    def _reveal(self, rect: QRect) -> None:
        """Scroll as little as possible so that a part of the map is in sight, with some room."""
        area, gap = self._area, self._geometry.zoom.row
        x = min(rect.left() - gap, max(area.left(), rect.right() + gap - area.width()))
        y = min(rect.top() - gap, max(area.top(), rect.bottom() + gap - area.height()))
        self._scroll_to(QPoint(max(0, x), max(0, y)))

    def _announce(self) -> None:
        """Show that another message is current or selected."""
        self.canvas.update()
        self.canvas.announce_focus()
        self.moved.emit()
