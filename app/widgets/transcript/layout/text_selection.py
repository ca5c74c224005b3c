"""The selected text of the transcript. Main thread only."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication

from app.widgets.transcript.layout.selection import (
    FIRST_PLACE,
    LAST_PLACE,
    Caret,
    Selection,
    selected_text,
)
from app.widgets.transcript.layout.stack import MessageStack


class TextSelection(QObject):
    """The selection of one transcript. The mouse, the keys and the find bar change it."""

    changed = Signal()  # other text is selected, or none any more: paint again

    def __init__(self, stack: MessageStack, parent: QObject) -> None:
        super().__init__(parent)
        self.value: Selection | None = None
        self._stack = stack

    @property
    def is_empty(self) -> bool:
        return self.value is None or self.value.is_empty

    @property
    def text(self) -> str:
        """The text to copy, or an empty string."""
        if self.value is None or self.value.is_empty:
            return ""
        return selected_text(self._stack.layouts, self.value)

    def select(self, value: Selection | None) -> None:
        """Set the selection. None removes the selection."""
        was_empty = self.is_empty
        self.value = value
        if not (was_empty and self.is_empty):
            self.changed.emit()

    def select_all(self) -> None:
        if len(self._stack):
            last = Caret(len(self._stack) - 1, LAST_PLACE)
            self.select(Selection(Caret(0, FIRST_PLACE), last))

    def copy(self) -> None:
        """Copy the selected text, if any, to the clipboard."""
        if text := self.text:
            QGuiApplication.clipboard().setText(text)
