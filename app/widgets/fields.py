"""Fields for text: which keys are theirs, the input method's, the window's.

While an input method composes, Return and Esc are its own. With nothing to undo in the field, the
key goes on to the window, which brings back what was deleted last.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import (
    QContextMenuEvent,
    QInputMethodEvent,
    QKeyEvent,
    QKeySequence,
    QTextDocument,
)
from PySide6.QtWidgets import QLineEdit, QMenu, QPlainTextEdit, QWidget
from typing_extensions import override

from app.widgets.line_height import EvenLines
from app.widgets.menu import pop_up, round_corners


class LineField(QLineEdit):
    """One line."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._is_composing = False

    def is_input_methods(self, event: QEvent) -> bool:
        """Whether it is a key that the input method has in mind."""
        return self._is_composing and _ends_composing(event)

    @override
    def event(self, arg__1: QEvent) -> bool:
        if self.is_input_methods(arg__1):
            return True
        if _asks_to_undo(arg__1) and not self.isUndoAvailable():
            arg__1.ignore()
            return False
        return super().event(arg__1)

    @override
    def contextMenuEvent(self, arg__1: QContextMenuEvent) -> None:
        _show_menu(self.createStandardContextMenu(), arg__1)

    @override
    def inputMethodEvent(self, arg__1: QInputMethodEvent) -> None:
        self._is_composing = bool(arg__1.preeditString())
        super().inputMethodEvent(arg__1)


class TextField(QPlainTextEdit):
    """Several lines of plain text."""

    def __init__(self, line_height: int, parent: QWidget) -> None:
        super().__init__(parent)
        self.is_composing = False
        document = QTextDocument(self)
        self.lines = EvenLines(line_height, document)
        document.setDocumentLayout(self.lines)
        self.setDocument(document)

    @override
    def event(self, e: QEvent) -> bool:
        if self.is_composing and _ends_composing(e):
            return True
        if _asks_to_undo(e) and not self.document().isUndoAvailable():
            e.ignore()
            return False
        return super().event(e)

    @override
    def contextMenuEvent(self, e: QContextMenuEvent) -> None:
        _show_menu(self.createStandardContextMenu(), e)

    @override
    def inputMethodEvent(self, e: QInputMethodEvent) -> None:
        self.is_composing = bool(e.preeditString())
        super().inputMethodEvent(e)


def _show_menu(menu: QMenu, event: QContextMenuEvent) -> None:
    round_corners(menu)
    pop_up(menu, event.globalPos())


def _ends_composing(event: QEvent) -> bool:
    return (
        event.type() is QEvent.Type.KeyPress
        and isinstance(event, QKeyEvent)
        and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Escape)
    )


def _asks_to_undo(event: QEvent) -> bool:
    """Whether Qt asks a field if it wants the key for Undo before the menu gets it."""
    return (
        event.type() is QEvent.Type.ShortcutOverride
        and isinstance(event, QKeyEvent)
        and event.matches(QKeySequence.StandardKey.Undo)
    )
