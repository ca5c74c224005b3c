"""The transcript for screen readers: a list with one item for each message. Main thread.

install_accessibility() is called once per process; interfaces are made when somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QPoint, QRect, QSize
from PySide6.QtGui import (
    QAccessible,
    QAccessibleActionInterface,
    QAccessibleInterface,
    QAccessibleTextInterface,
    QWindow,
)
from PySide6.QtWidgets import QAccessibleWidget, QWidget
from typing_extensions import override

from app.viewmodels.transcript import ItemStatus, TranscriptItem
from app.widgets.transcript_actions import Button, answer_parts, user_parts
from app.widgets.transcript_placement import Placement
from app.widgets.transcript_rows import Action
from app.widgets.transcript_stack import MessageStack
from app.words import commands, problems, transcript as words
from engine.types import Role

_SPEAKERS = {Role.USER: words.YOU, Role.ASSISTANT: words.ASSISTANT, Role.SYSTEM: words.SYSTEM}
_STATUS_WORDS = {
    ItemStatus.STREAMING: words.BEING_WRITTEN,
    ItemStatus.STOPPED: words.WAS_STOPPED,
    ItemStatus.FAILED: words.HAS_FAILED,
}


class MessageReader:
    """Says what a screen reader says, and where it is on the screen; does what it wants done."""

    def __init__(
        self,
        stack: MessageStack,
        placement: Placement,
        viewport: QWidget,
        *,
        act: Callable[[int, Action], object],
        reveal: Callable[[int], object],
    ) -> None:
        self.act = act
        self.reveal = reveal
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

    def actions(self, index: int) -> dict[str, Action]:
        """What can be done with a message, by the words that its buttons say."""
        return _actions(self._stack.layouts[index].item)

    def rect(self, index: int) -> QRect:
        layout = self._stack.layouts[index]
        y = self._stack.top(index) - self._placement.top
        corner = self._viewport.mapToGlobal(QPoint(self._placement.column_left, y))
        return QRect(corner, QSize(layout.width, layout.height))

    @property
    def shown(self) -> QRect:
        """The part of the screen that messages are seen in."""
        return QRect(self._viewport.mapToGlobal(QPoint(0, 0)), self._viewport.size())

    def at(self, x: int, y: int) -> int:
        local = self._viewport.mapFromGlobal(QPoint(x, y))
        return self._stack.at(local.y() + self._placement.top)


class TranscriptCanvas(QWidget):
    """The viewport of the transcript: a class of its own, so that its interface is found."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.reader: MessageReader | None = None
        self.interface: CanvasInterface | None = None  # one that Python drops would crash Qt


class MessageText(QAccessibleTextInterface):
    """The text of a message, by characters, wherever the message is.

    What is selected can't be told: PySide gives no way to implement selection(), so there is none.
    """

    def __init__(self, reader: MessageReader, index: int) -> None:
        super().__init__()
        self._reader = reader
        self._index = index

    @override
    def characterCount(self) -> int:
        return len(self._text)

    @override
    def text(self, startOffset: int, endOffset: int) -> str:
        return self._text[max(0, startOffset) : max(0, endOffset)]

    @override
    def characterRect(self, offset: int) -> QRect:
        return self._reader.rect(self._index) if self._text else QRect()

    @override
    def scrollToSubstring(self, startIndex: int, endIndex: int) -> None:
        if self._text:
            self._reader.reveal(self._index)

    @override
    def cursorPosition(self) -> int:
        return 0

    @override
    def offsetAtPoint(self, point: QPoint) -> int:
        return 0

    @override
    def selectionCount(self) -> int:
        return 0

    @override
    def addSelection(self, startOffset: int, endOffset: int) -> None:
        """Messages are selected by mouse."""

    @override
    def removeSelection(self, selectionIndex: int) -> None:
        """There is none."""

    @override
    def setSelection(self, selectionIndex: int, startOffset: int, endOffset: int) -> None:
        """There is none."""

    @override
    def setCursorPosition(self, position: int) -> None:
        """Nothing is written here."""

    @property
    def _text(self) -> str:
        """Nothing once the message is gone."""
        return self._reader.text(self._index) if self._index < len(self._reader) else ""


class MessageActions(QAccessibleActionInterface):
    """The buttons of a message, which are painted, not widgets."""

    def __init__(self, reader: MessageReader, index: int) -> None:
        super().__init__()
        self._reader = reader
        self._index = index

    @override
    def actionNames(self) -> list[str]:
        return list(self._actions)

    @override
    def doAction(self, actionName: str) -> None:
        action = self._actions.get(actionName)
        if action is not None:
            self._reader.act(self._index, action)

    @override
    def keyBindingsForAction(self, actionName: str) -> list[str]:
        return []

    @property
    def _actions(self) -> dict[str, Action]:
        """Nothing once the message is gone."""
        return self._reader.actions(self._index) if self._index < len(self._reader) else {}


class MessageInterface(QAccessibleInterface):
    """One message."""

    def __init__(self, canvas: TranscriptCanvas, reader: MessageReader, index: int) -> None:
        super().__init__()
        self._canvas = canvas
        self._reader = reader
        self._index = index
        self._parts: dict[QAccessible.InterfaceType, object] = {
            QAccessible.InterfaceType.TextInterface: MessageText(reader, index),
            QAccessible.InterfaceType.ActionInterface: MessageActions(reader, index),
        }

    @override
    def interface_cast(self, arg__1: QAccessible.InterfaceType) -> object:  # pyright: ignore[reportIncompatibleMethodOverride] - shiboken makes the pointer of it
        return self._parts.get(arg__1)

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
        state = QAccessible.State()
        state.readOnly = True
        state.multiLine = True
        state.offscreen = not self.rect().intersects(self._reader.shown)
        return state

    @override
    def rect(self) -> QRect:
        return self._reader.rect(self._index) if self.isValid() else QRect()

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


def _actions(item: TranscriptItem) -> dict[str, Action]:
    if item.status is ItemStatus.STREAMING:
        return {commands.STOP: Action.STOP}
    if item.editing:
        return {}
    parts = user_parts(item) if item.role is Role.USER else answer_parts(item)
    buttons = (part for part in parts if isinstance(part, Button) and part.enabled)
    actions = {button.tip: button.action for button in buttons}
    if item.can_continue:
        actions[commands.CONTINUE] = Action.CONTINUE
    if item.problem is not None:
        actions[words.RETRY] = Action.RETRY
        if item.problem.details:
            actions[problems.COPY_DETAILS] = Action.COPY_DETAILS
    return actions


def install_accessibility() -> None:
    """Teach Qt about the transcript."""
    QAccessible.installFactory(_make_interface)


def _make_interface(_class_name: str, target: QObject) -> QAccessibleInterface | None:
    if not isinstance(target, TranscriptCanvas) or target.reader is None:
        return None
    target.interface = CanvasInterface(target, target.reader)
    return target.interface
