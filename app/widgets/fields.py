"""Text fields that leave some keys to the input method and to the window.

While an input method composes text, only the input method gets Return and Esc. If a field has
nothing to undo, it ignores the Undo key. The window's Undo command then reverts the newest entry of
the app's undo list. The same holds for Redo.
"""

from __future__ import annotations

from collections.abc import Callable

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

from app.theme.tokens import Type
from app.widgets.hiding_bar import HidingBar
from app.widgets.line_height import EvenLines
from app.widgets.menu import pop_up, round_corners
from app.widgets.tips import hide_tip_at_key


class LineField(QLineEdit):
    """A text field of one line."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._is_composing = False
        self._width = 0  # width at the normal size of text; 0: chosen by the layout

    def set_width(self, width: int) -> None:
        """Set the width that the field has at the normal size of text. It scales with the font."""
        self._width = width
        self._fit()

    def _fit(self) -> None:
        if self._width:
            size = self.font().pixelSize()  # -1 before the style sheet has set the font
            self.setFixedWidth(round(self._width * max(1.0, size / Type.UI.size)))

    def is_input_methods(self, event: QEvent) -> bool:
        """Return True if the key is Return or Esc and the input method is composing text."""
        return self._is_composing and _ends_composing(event)

    @override
    def event(self, arg__1: QEvent) -> bool:
        hide_tip_at_key(arg__1)
        if self.is_input_methods(arg__1):
            return True
        if _is_key_without_step(arg__1, self._has_steps):
            arg__1.ignore()
            return False
        return super().event(arg__1)

    def _has_steps(self) -> tuple[bool, bool]:
        return self.isUndoAvailable(), self.isRedoAvailable()

    @override
    def changeEvent(self, arg__1: QEvent) -> None:
        super().changeEvent(arg__1)
        if arg__1.type() is QEvent.Type.FontChange:
            self._fit()

    @override
    def contextMenuEvent(self, arg__1: QContextMenuEvent) -> None:
        _show_menu(self.createStandardContextMenu(), arg__1)

    @override
    def inputMethodEvent(self, arg__1: QInputMethodEvent) -> None:
        self._is_composing = bool(arg__1.preeditString())
        super().inputMethodEvent(arg__1)


class TextField(QPlainTextEdit):
    """A text field of several lines. Each line is `line_height` px high."""

    def __init__(self, line_height: int, parent: QWidget) -> None:
        super().__init__(parent)
        self.is_composing = False  # True while the input method shows uncommitted text
        self.setVerticalScrollBar(HidingBar(self))
        document = QTextDocument(self)
        self.lines = EvenLines(line_height, document)
        document.setDocumentLayout(self.lines)
        self.setDocument(document)

    def set_line_height(self, line_height: int) -> None:
        self.lines.line_height = line_height
        self.document().markContentsDirty(0, self.document().characterCount())

    @override
    def event(self, e: QEvent) -> bool:
        hide_tip_at_key(e)
        if self.is_composing and _ends_composing(e):
            return True
        if _is_key_without_step(e, self._has_steps):
            e.ignore()
            return False
        return super().event(e)

    def _has_steps(self) -> tuple[bool, bool]:
        document = self.document()
        return document.isUndoAvailable(), document.isRedoAvailable()

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


def _is_key_without_step(event: QEvent, has_steps: Callable[[], tuple[bool, bool]]) -> bool:
    """Return True for the Undo or Redo key of a field that has nothing to undo or redo.

    Qt sends a ShortcutOverride event to the focused field before it looks for a menu shortcut.

    has_steps: returns whether there is something to undo, and to redo. It is called for these keys
        only: a field that is being destroyed gets events too, and has no document.
    """
    if event.type() is not QEvent.Type.ShortcutOverride or not isinstance(event, QKeyEvent):
        return False
    keys = (QKeySequence.StandardKey.Undo, QKeySequence.StandardKey.Redo)
    return any(
        event.matches(key) and not is_there for key, is_there in zip(keys, has_steps(), strict=True)
    )
