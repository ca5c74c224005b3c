"""Accessible interfaces of messages, and of the links, buttons and code blocks in them.

Used on the main thread only. Messages are painted, so Qt finds no widgets to describe to a screen
reader. This tree of QAccessibleInterface objects takes their place:

    CanvasInterface (canvas.py)    the list
      MessageInterface             one for each message: name, text, actions
        PartInterface              a link, a button, or a code block with its buttons

Interfaces hold no content. They address a message by its index and a part by its number, and read
the current content from `MessageReader` at each call. An interface is made when a screen reader
first visits it. It is then kept, because Qt holds a raw pointer to it and crashes if Python deletes
it. An interface becomes invalid when its message or part no longer exists.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, QPoint, QRect
from PySide6.QtGui import (
    QAccessible,
    QAccessibleActionInterface,
    QAccessibleInterface,
    QAccessibleTextInterface,
    QWindow,
)
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from app.widgets.transcript.accessibility.reader import MessageReader, ReadablePart
from app.widgets.transcript.rows.row import RowAction


class MessageText(QAccessibleTextInterface):
    """Gives screen readers the text of a message, even if the message is not laid out.

    It reports no selection, because PySide offers no way to implement selection().
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
        """Do nothing: screen readers cannot select text in the transcript."""

    @override
    def removeSelection(self, selectionIndex: int) -> None:
        """Do nothing: this class reports no selection that could be removed."""

    @override
    def setSelection(self, selectionIndex: int, startOffset: int, endOffset: int) -> None:
        """Do nothing: screen readers cannot select text in the transcript."""

    @override
    def setCursorPosition(self, position: int) -> None:
        """Do nothing: the text is read-only and has no cursor."""

    @property
    def _text(self) -> str:
        """The text of the message; empty if the message no longer exists."""
        return self._reader.text(self._index) if self._index < len(self._reader) else ""


class MessageActions(QAccessibleActionInterface):
    """Offers the actions of a message, such as Copy and Edit, to screen readers.

    The buttons of these actions are painted; they are not widgets.
    """

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
    def _actions(self) -> dict[str, RowAction]:
        """The actions of the message by name; empty if the message no longer exists."""
        return self._reader.actions(self._index) if self._index < len(self._reader) else {}


class AccessNode(QAccessibleInterface):
    """The accessible interface of a message or of a part of a message."""

    def __init__(self, canvas: QWidget, reader: MessageReader, index: int) -> None:
        super().__init__()
        self._canvas = canvas
        self._reader = reader
        self._index = index
        # Interfaces of parts, made on first use. The index in the list is the number of the part.
        self._nodes: list[PartInterface] = []

    def parts(self) -> Sequence[ReadablePart]:
        """Return the parts of this message, or the buttons of this code block."""
        raise NotImplementedError

    def focused(self) -> AccessNode | None:
        """Return the descendant that has the keyboard focus, or None."""
        inner = [self.child(number) for number in range(self.childCount())]
        return next((found for node in inner if (found := node.focused()) is not None), None)

    @override
    def object(self) -> QObject | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        return None

    @override
    def window(self) -> QWindow | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._canvas.window().windowHandle()

    @override
    def childCount(self) -> int:
        return len(self.parts())

    @override
    def child(self, index: int) -> PartInterface:
        while len(self._nodes) <= index:
            node = PartInterface(self._canvas, self._reader, self._index, self, len(self._nodes))
            QAccessible.registerAccessibleInterface(node)
            self._nodes.append(node)
        return self._nodes[index]

    @override
    def indexOfChild(self, arg__1: QAccessibleInterface) -> int:
        return next((at for at, node in enumerate(self._nodes) if node is arg__1), -1)

    @override
    def childAt(  # pyright: ignore[reportIncompatibleMethodOverride] - may be None
        self, x: int, y: int
    ) -> QAccessibleInterface | None:
        inner = [self.child(number) for number in range(self.childCount())]
        return next((node for node in inner if node.rect().contains(x, y)), None)

    @override
    def setText(self, t: QAccessible.Text, text: str) -> None:
        """Do nothing: the transcript is read-only."""


class MessageInterface(AccessNode):
    """The accessible interface of one message, with the role of a list item."""

    def __init__(self, canvas: QWidget, reader: MessageReader, index: int) -> None:
        super().__init__(canvas, reader, index)
        self._parts: dict[QAccessible.InterfaceType, object] = {
            QAccessible.InterfaceType.TextInterface: MessageText(reader, index),
            QAccessible.InterfaceType.ActionInterface: MessageActions(reader, index),
        }

    @override
    def interface_cast(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, arg__1: QAccessible.InterfaceType
    ) -> object:
        # shiboken makes the pointer of the returned object.
        return self._parts.get(arg__1)

    @override
    def isValid(self) -> bool:
        return self._index < len(self._reader)

    @override
    def parent(self) -> QAccessibleInterface:
        return QAccessible.queryAccessibleInterface(self._canvas)

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
    def parts(self) -> Sequence[ReadablePart]:
        return self._reader.parts(self._index) if self.isValid() else ()


class PartInterface(AccessNode):
    """The accessible interface of a link, a button, or a code block with its buttons."""

    def __init__(
        self, canvas: QWidget, reader: MessageReader, index: int, above: AccessNode, number: int
    ) -> None:
        super().__init__(canvas, reader, index)
        self._above = above
        self._number = number
        self._press = PartPress(self)

    @property
    def part(self) -> ReadablePart | None:
        """The described link, button or code block. None if the message no longer has it."""
        parts = self._above.parts()
        return parts[self._number] if self._number < len(parts) else None

    def press(self) -> None:
        part = self.part
        if part is not None and part.hit is not None:
            self._reader.press(self._index, part.hit)

    @override
    def parts(self) -> Sequence[ReadablePart]:
        part = self.part
        return () if part is None else part.inner

    @override
    def focused(self) -> AccessNode | None:
        part = self.part
        if part is not None and self._reader.is_focused(self._index, part):
            return self
        return super().focused()

    @override
    def interface_cast(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, arg__1: QAccessible.InterfaceType
    ) -> object:
        # shiboken makes the pointer of the returned object.
        return self._press if arg__1 is QAccessible.InterfaceType.ActionInterface else None

    @override
    def isValid(self) -> bool:
        return self.part is not None

    @override
    def parent(self) -> QAccessibleInterface:
        return self._above

    @override
    def role(self) -> QAccessible.Role:
        part = self.part
        if part is None or part.hit is None:
            return QAccessible.Role.Grouping
        is_link = part.hit.at.target.action is RowAction.OPEN_LINK
        return QAccessible.Role.Link if is_link else QAccessible.Role.Button

    @override
    def state(self) -> QAccessible.State:
        state, part = QAccessible.State(), self.part
        state.offscreen = not self.rect().intersects(self._reader.shown)
        state.focusable = part is not None and part.hit is not None
        state.focused = part is not None and self._reader.is_focused(self._index, part)
        return state

    @override
    def rect(self) -> QRect:
        part = self.part
        return QRect() if part is None else self._reader.rect(self._index, part.rect)

    @override
    def text(self, t: QAccessible.Text) -> str:
        part = self.part
        if part is not None and t is QAccessible.Text.Name:
            return part.name
        if part is not None and part.hit is not None and t is QAccessible.Text.Description:
            return part.hit.tip
        return ""


class PartPress(QAccessibleActionInterface):
    """Lets screen readers press a link or button."""

    def __init__(self, part: PartInterface) -> None:
        super().__init__()
        self._part = part

    @override
    def actionNames(self) -> list[str]:
        part = self._part.part
        return [] if part is None or part.hit is None else [self.pressAction()]

    @override
    def doAction(self, actionName: str) -> None:
        if actionName == self.pressAction():
            self._part.press()

    @override
    def keyBindingsForAction(self, actionName: str) -> list[str]:
        return []
