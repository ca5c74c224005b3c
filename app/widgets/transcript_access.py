"""The transcript for screen readers: a list with one item for each message. Main thread.

install_accessibility() is called once per process; interfaces are made when somebody asks.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, QPoint, QRect, QSize
from PySide6.QtGui import QAccessible, QAccessibleInterface, QWindow
from PySide6.QtWidgets import QAccessibleWidget, QWidget
from typing_extensions import override

from app.viewmodels.transcript import ItemStatus
from app.widgets.transcript_placement import Placement
from app.widgets.transcript_stack import MessageStack
from app.words import transcript as words
from engine.types import Role

_SPEAKERS = {Role.USER: words.YOU, Role.ASSISTANT: words.ASSISTANT, Role.SYSTEM: words.SYSTEM}
_STATUS_WORDS = {
    ItemStatus.STREAMING: words.BEING_WRITTEN,
    ItemStatus.STOPPED: words.WAS_STOPPED,
    ItemStatus.FAILED: words.HAS_FAILED,
}


class MessageReader:
    """Says what a screen reader says, and where it is on the screen."""

    def __init__(self, stack: MessageStack, placement: Placement, viewport: QWidget) -> None:
        self._stack = stack
        self._placement = placement
        self._viewport = viewport

    def __len__(self) -> int:
        return len(self._stack)

    def name(self, index: int) -> str:
        item = self._stack.layouts[index].item
        parts = [_SPEAKERS[item.role], words.message_spoken(number=index + 1, count=len(self))]
        if item.version.count > 1:
            parts.append(words.version_spoken(number=item.version.number, count=item.version.count))
        if item.status is not ItemStatus.COMPLETE:
            parts.append(_STATUS_WORDS[item.status])
        return ", ".join(parts)

    def text(self, index: int) -> str:
        layout = self._stack.layouts[index]
        problem = "" if layout.item.problem is None else str(layout.item.problem)
        return "\n".join(part for part in (layout.text, problem) if part)

    def description(self, index: int) -> str:
        """The text, and where the context of an answer came from."""
        line = self._stack.layouts[index].item.state_line
        return "\n".join(part for part in (self.text(index), line and line.explained) if part)

    def rect(self, index: int) -> QRect:
        layout = self._stack.layouts[index]
        y = self._stack.top(index) - self._placement.top
        corner = self._viewport.mapToGlobal(QPoint(self._placement.column_left, y))
        return QRect(corner, QSize(layout.width, layout.height))

    def at(self, x: int, y: int) -> int:
        local = self._viewport.mapFromGlobal(QPoint(x, y))
        return self._stack.at(local.y() + self._placement.top)


class TranscriptCanvas(QWidget):
    """The viewport of the transcript: a class of its own, so that its interface is found."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.reader: MessageReader | None = None
        self.interface: CanvasInterface | None = None  # one that Python drops would crash Qt


class MessageInterface(QAccessibleInterface):
    """One message."""

    def __init__(self, canvas: TranscriptCanvas, reader: MessageReader, index: int) -> None:
        super().__init__()
        self._canvas = canvas
        self._reader = reader
        self._index = index

    @override
    def isValid(self) -> bool:
        return self._index < len(self._reader)

    @override
    def object(self) -> QObject | None:  # pyright: ignore[reportIncompatibleMethodOverride] - may be None
        return None

    @override
    def window(self) -> QWindow | None:  # pyright: ignore[reportIncompatibleMethodOverride] - may be None
        return self._canvas.window().windowHandle()

    @override
    def parent(self) -> QAccessibleInterface:
        return QAccessible.queryAccessibleInterface(self._canvas)

    @override
    def child(self, index: int) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride] - may be None
        return None

    @override
    def childCount(self) -> int:
        return 0

    @override
    def childAt(self, x: int, y: int) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride] - may be None
        return None

    @override
    def indexOfChild(self, arg__1: QAccessibleInterface) -> int:
        return -1

    @override
    def role(self) -> QAccessible.Role:
        return QAccessible.Role.ListItem

    @override
    def state(self) -> QAccessible.State:
        return QAccessible.State()

    @override
    def rect(self) -> QRect:
        return self._reader.rect(self._index)

    @override
    def text(self, t: QAccessible.Text) -> str:
        if not self.isValid():
            return ""
        if t is QAccessible.Text.Name:
            return self._reader.name(self._index)
        if t is QAccessible.Text.Value:
            return self._reader.text(self._index)
        if t is QAccessible.Text.Description:
            return self._reader.description(self._index)
        return ""

    @override
    def setText(self, t: QAccessible.Text, text: str) -> None:
        """Messages are not written by screen readers."""


class CanvasInterface(QAccessibleWidget):
    """The list of messages, and what is really a widget on the canvas."""

    def __init__(self, canvas: TranscriptCanvas, reader: MessageReader) -> None:
        super().__init__(canvas, QAccessible.Role.List, words.MESSAGES)
        self._canvas = canvas
        self._reader = reader
        self._items: list[MessageInterface] = []

    @override
    def childCount(self) -> int:
        return len(self._reader) + super().childCount()

    @override
    def child(self, index: int) -> QAccessibleInterface:
        count = len(self._reader)
        if index >= count:
            return super().child(index - count)
        while len(self._items) <= index:
            item = MessageInterface(self._canvas, self._reader, len(self._items))
            QAccessible.registerAccessibleInterface(item)
            self._items.append(item)
        return self._items[index]

    @override
    def indexOfChild(self, child: QAccessibleInterface) -> int:
        for index, item in enumerate(self._items):
            if item is child:
                return index
        inner = super().indexOfChild(child)
        return inner if inner < 0 else inner + len(self._reader)

    @override
    def childAt(self, x: int, y: int) -> QAccessibleInterface:
        widget = super().childAt(x, y)
        return widget or self.child(self._reader.at(x, y))


def install_accessibility() -> None:
    """Teach Qt about the transcript."""
    QAccessible.installFactory(_make_interface)


def _make_interface(_class_name: str, target: QObject) -> QAccessibleInterface | None:
    if not isinstance(target, TranscriptCanvas) or target.reader is None:
        return None
    target.interface = CanvasInterface(target, target.reader)
    return target.interface
