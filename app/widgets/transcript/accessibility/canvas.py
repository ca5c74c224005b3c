"""The transcript as a list for screen readers, with one item for each message.

Used on the main thread only. Call install_accessibility() once per process. The function registers
a factory that Qt calls when a screen reader first needs the interface of a transcript.
"""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtGui import QAccessible, QAccessibleEvent, QAccessibleInterface
from PySide6.QtWidgets import QAccessibleWidget, QWidget
from typing_extensions import override

from app.widgets.transcript.accessibility.nodes import AccessNode, MessageInterface
from app.widgets.transcript.accessibility.reader import MessageReader
from app.words import transcript as words


class TranscriptCanvas(QWidget):
    """The viewport of the transcript.

    It has its own class, so that the accessibility factory can recognise it.
    """

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        # Set by the view. While it is None, screen readers get Qt's default interface for widgets.
        self.reader: MessageReader | None = None
        # Keeps the interface alive, because Qt has only a raw pointer to it.
        self.interface: CanvasInterface | None = None

    def announce_focus(self) -> None:
        """Report the focused link or button to screen readers.

        If no link or button is focused, report the transcript.
        """
        if self.reader is None or not QAccessible.isActive():
            return
        canvas = QAccessible.queryAccessibleInterface(self)
        message = self.reader.focused
        item = None if message is None else canvas.child(message)
        part = item.focused() if isinstance(item, AccessNode) else None
        event = QAccessible.Event.Focus
        told = QAccessibleEvent(part or canvas.parent(), event)
        QAccessible.updateAccessibility(told)


class CanvasInterface(QAccessibleWidget):
    """The list of messages, followed by the child widgets of the canvas."""

    def __init__(self, canvas: TranscriptCanvas, reader: MessageReader) -> None:
        super().__init__(canvas, QAccessible.Role.List, words.MESSAGES)
        self._canvas = canvas
        self._reader = reader
        # Interfaces are made on first use. They are never dropped, because Qt has raw pointers to
        # them.
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
    """Register the factory that makes accessible interfaces for transcripts."""
    QAccessible.installFactory(_make_interface)


def _make_interface(_class_name: str, target: QObject) -> QAccessibleInterface | None:
    if not isinstance(target, TranscriptCanvas) or target.reader is None:
        return None
    target.interface = CanvasInterface(target, target.reader)
    return target.interface
