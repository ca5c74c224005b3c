"""The branch map as a list for screen readers, with one item for each message. Main thread.

The map is painted, so Qt finds no widgets in it to describe. As in the transcript, an item is made
when a screen reader first visits it, and then kept, because Qt has a raw pointer to it. It has no
content: it reads the message at its index from `MapReader` at each call.
"""

from __future__ import annotations

from functools import cache
from typing import Protocol

from PySide6.QtCore import QObject, QRect
from PySide6.QtGui import (
    QAccessible,
    QAccessibleActionInterface,
    QAccessibleEvent,
    QAccessibleInterface,
    QWindow,
)
from PySide6.QtWidgets import QAccessibleWidget, QWidget
from typing_extensions import override

from app.words import branches as words


class MapReader(Protocol):
    """The map, as screen readers read it. An index counts messages, branch after branch."""

    def num_items(self) -> int: ...
    def item_name(self, index: int) -> str: ...
    def item_value(self, index: int) -> str: ...
    def item_rect(self, index: int) -> QRect:
        """Return the place of a message in the canvas."""
        ...

    def item_at(self, x: int, y: int) -> int:
        """Return the index of the message at a place in the canvas, or -1."""
        ...

    def focused_item(self) -> int: ...
    def is_item_selected(self, index: int) -> bool: ...
    def go_to_item(self, index: int) -> None: ...


class MapCanvas(QWidget):
    """The viewport of the map. Its class tells the accessibility factory what it is."""

    def __init__(self, reader: MapReader, parent: QWidget) -> None:
        super().__init__(parent)
        _install()
        self.reader = reader
        # Keeps the interface alive, because Qt has only a raw pointer to it.
        self.interface: MapInterface | None = None

    def announce_focus(self) -> None:
        """Report the focused message to screen readers."""
        at = self.reader.focused_item()
        if at >= 0 and QAccessible.isActive():
            item = QAccessible.queryAccessibleInterface(self).child(at)
            QAccessible.updateAccessibility(QAccessibleEvent(item, QAccessible.Event.Focus))


class MapInterface(QAccessibleWidget):
    """The list of messages."""

    def __init__(self, canvas: MapCanvas) -> None:
        super().__init__(canvas, QAccessible.Role.List, words.MAP)
        self._canvas = canvas
        self._items: list[MapItem] = []

    @override
    def childCount(self) -> int:
        return self._canvas.reader.num_items()

    @override
    def child(self, index: int) -> QAccessibleInterface:
        while len(self._items) <= index:
            item = MapItem(self._canvas, len(self._items))
            QAccessible.registerAccessibleInterface(item)
            self._items.append(item)
        return self._items[index]

    @override
    def indexOfChild(self, child: QAccessibleInterface) -> int:
        return next((at for at, item in enumerate(self._items) if item is child), -1)

    @override
    def childAt(  # pyright: ignore[reportIncompatibleMethodOverride] - may be None
        self, x: int, y: int
    ) -> QAccessibleInterface | None:
        corner = self._canvas.mapToGlobal(self._canvas.rect().topLeft())
        at = self._canvas.reader.item_at(x - corner.x(), y - corner.y())
        return None if at < 0 else self.child(at)

    @override
    def focusChild(  # pyright: ignore[reportIncompatibleMethodOverride] - may be None
        self,
    ) -> QAccessibleInterface | None:
        at = self._canvas.reader.focused_item()
        return None if at < 0 else self.child(at)


class MapItem(QAccessibleInterface):
    """One message of the map."""

    def __init__(self, canvas: MapCanvas, index: int) -> None:
        super().__init__()
        self._canvas = canvas
        self._index = index
        self._press = MapItemPress(self)

    def press(self) -> None:
        if self.isValid():
            self._canvas.reader.go_to_item(self._index)

    @override
    def object(self) -> QObject | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        return None

    @override
    def window(self) -> QWindow | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._canvas.window().windowHandle()

    @override
    def isValid(self) -> bool:
        return self._index < self._canvas.reader.num_items()

    @override
    def parent(self) -> QAccessibleInterface:
        return QAccessible.queryAccessibleInterface(self._canvas)

    @override
    def childCount(self) -> int:
        return 0

    @override
    def child(self, index: int) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        return None

    @override
    def childAt(  # pyright: ignore[reportIncompatibleMethodOverride] - no children
        self, x: int, y: int
    ) -> None:
        return None

    @override
    def indexOfChild(self, arg__1: QAccessibleInterface) -> int:
        return -1

    @override
    def role(self) -> QAccessible.Role:
        return QAccessible.Role.ListItem

    @override
    def state(self) -> QAccessible.State:
        state, reader = QAccessible.State(), self._canvas.reader
        if self.isValid():
            state.focusable = state.selectable = True
            state.focused = reader.focused_item() == self._index
            state.selected = reader.is_item_selected(self._index)
            state.offscreen = not reader.item_rect(self._index).intersects(self._canvas.rect())
        return state

    @override
    def rect(self) -> QRect:
        if not self.isValid():
            return QRect()
        rect = self._canvas.reader.item_rect(self._index)
        return QRect(self._canvas.mapToGlobal(rect.topLeft()), rect.size())

    @override
    def text(self, t: QAccessible.Text) -> str:
        if self.isValid() and t is QAccessible.Text.Name:
            return self._canvas.reader.item_name(self._index)
        if self.isValid() and t is QAccessible.Text.Value:
            return self._canvas.reader.item_value(self._index)
        return ""

    @override
    def setText(self, t: QAccessible.Text, text: str) -> None:
        """Do nothing: the map is read-only."""

    @override
    def interface_cast(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, arg__1: QAccessible.InterfaceType
    ) -> object:
        # shiboken makes the pointer of the returned object.
        return self._press if arg__1 is QAccessible.InterfaceType.ActionInterface else None


class MapItemPress(QAccessibleActionInterface):
    """The action of a message: to show it in the chat."""

    def __init__(self, item: MapItem) -> None:
        super().__init__()
        self._item = item

    @override
    def actionNames(self) -> list[str]:
        return [QAccessibleActionInterface.pressAction()]

    @override
    def doAction(self, actionName: str) -> None:
        if actionName == QAccessibleActionInterface.pressAction():
            self._item.press()

    @override
    def keyBindingsForAction(self, actionName: str) -> list[str]:
        return []


@cache
def _install() -> None:
    """Register the factory that makes the interfaces of maps, once."""
    QAccessible.installFactory(_make_interface)


def _make_interface(_class_name: str, target: QObject) -> QAccessibleInterface | None:
    if not isinstance(target, MapCanvas):
        return None
    target.interface = MapInterface(target)
    return target.interface
