"""A field for a message: Return hands it over, Shift+Return breaks the line, Esc goes back.

While an input method composes, these keys are its own.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QInputMethodEvent, QKeyEvent
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QWidget
from typing_extensions import override

_BREAKS = Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.AltModifier


class MessageEdit(QPlainTextEdit):
    """Plain text without a frame; Tab leaves it."""

    submitted = Signal()
    cancelled = Signal()

    def __init__(self, name: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.document().setDocumentMargin(0)
        self.is_composing = False

    @override
    def keyPressEvent(self, e: QKeyEvent) -> None:
        is_return = e.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if not is_return and e.key() != Qt.Key.Key_Escape:
            super().keyPressEvent(e)
        elif self.is_composing:
            e.accept()
        elif not is_return:
            self.cancelled.emit()
        elif e.modifiers() & _BREAKS:
            self.textCursor().insertBlock()
            self.ensureCursorVisible()
        else:
            self.submitted.emit()

    @override
    def inputMethodEvent(self, e: QInputMethodEvent) -> None:
        self.is_composing = bool(e.preeditString())
        super().inputMethodEvent(e)
