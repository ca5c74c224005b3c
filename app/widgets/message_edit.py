"""The text field for a message: Return sends, Shift+Return starts a new line, Esc cancels.

Ctrl+Return (⌘+Return on a Mac) always sends. If the setting `return_sends` is off, Return starts a
new line, and only Ctrl+Return sends.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QFrame, QWidget
from typing_extensions import override

from app.widgets.fields import TextField

_BREAKS = Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.AltModifier
_SENDS = Qt.KeyboardModifier.ControlModifier


def send_key(*, return_sends: bool) -> str:
    """Return the name of the key that sends a message, in this platform's notation."""
    keys = QKeySequence("Return" if return_sends else "Ctrl+Return")
    return keys.toString(QKeySequence.SequenceFormat.NativeText)


def break_key(*, return_sends: bool) -> str:
    """Return the name of the key that starts a new line, in this platform's notation."""
    keys = QKeySequence("Shift+Return" if return_sends else "Return")
    return keys.toString(QKeySequence.SequenceFormat.NativeText)


class MessageEdit(TextField):
    """A frameless plain-text field for one message. Tab moves the focus to the next widget."""

    submitted = Signal()  # emitted when the user presses the key that sends the message
    cancelled = Signal()  # emitted when the user presses Esc

    def __init__(self, name: str, line_height: int, parent: QWidget) -> None:
        super().__init__(line_height, parent)
        self.setAccessibleName(name)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.document().setDocumentMargin(0)
        self.return_sends = True  # True: Return sends the message; False: only Ctrl+Return sends it

    @override
    def keyPressEvent(self, e: QKeyEvent) -> None:
        is_return = e.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if not is_return and e.key() != Qt.Key.Key_Escape:
            super().keyPressEvent(e)
        elif not is_return:
            self.cancelled.emit()
        elif _is_of_a_command(e):
            e.ignore()
        elif e.modifiers() & _BREAKS or not (self.return_sends or e.modifiers() & _SENDS):
            self.textCursor().insertBlock()
            self.ensureCursorVisible()
        else:
            self.submitted.emit()


def _is_of_a_command(event: QKeyEvent) -> bool:
    """Return True for Shift+Ctrl+Return: a field gets the shortcut of a disabled command."""
    both = Qt.KeyboardModifier.ShiftModifier | _SENDS
    return event.modifiers() & both == both
