"""A field for a message: Return hands it over, Shift+Return breaks the line, Esc goes back.

Ctrl+Return (⌘ on a Mac) hands it over as well; who wants Return for new lines sends with that alone.
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
    """The key that hands a message over, as this system writes it."""
    keys = QKeySequence("Return" if return_sends else "Ctrl+Return")
    return keys.toString(QKeySequence.SequenceFormat.NativeText)


def break_key(*, return_sends: bool) -> str:
    """The key that begins a new line, as this system writes it."""
    keys = QKeySequence("Shift+Return" if return_sends else "Return")
    return keys.toString(QKeySequence.SequenceFormat.NativeText)


class MessageEdit(TextField):
    """Plain text without a frame; Tab leaves it."""

    submitted = Signal()
    cancelled = Signal()

    def __init__(self, name: str, line_height: int, parent: QWidget) -> None:
        super().__init__(line_height, parent)
        self.setAccessibleName(name)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.document().setDocumentMargin(0)
        self.return_sends = True

    @override
    def keyPressEvent(self, e: QKeyEvent) -> None:
        is_return = e.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if not is_return and e.key() != Qt.Key.Key_Escape:
            super().keyPressEvent(e)
        elif not is_return:
            self.cancelled.emit()
        elif e.modifiers() & _BREAKS or not (self.return_sends or e.modifiers() & _SENDS):
            self.textCursor().insertBlock()
            self.ensureCursorVisible()
        else:
            self.submitted.emit()
