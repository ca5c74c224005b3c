"""The text commands of the Edit menu (Undo to Select All), applied to the focused text field."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication, QLineEdit, QPlainTextEdit, QTextEdit

from app.controllers.undoing import Undoing
from app.widgets.transcript.view import TranscriptView


class TextCommands:
    """The slots of the Edit menu's text commands.

    The commands act on the focused text field. Without a focused text field, Copy and Select All
    act on the transcript. If no focused field has anything to undo, Undo reverts an action of the
    app, such as the deletion of a chat. Redo does the same.
    """

    def __init__(self, view: TranscriptView, undoing: Undoing) -> None:
        self._view = view
        self._undoing = undoing

    def undo(self) -> None:
        field = focused_field()
        if field is not None and _can_undo(field):
            field.undo()
        else:
            self._undoing.undo()

    def redo(self) -> None:
        field = focused_field()
        if field is not None and _can_redo(field):
            field.redo()
        else:
            self._undoing.redo()

    def cut(self) -> None:
        if (field := focused_field()) is not None:
            field.cut()

    def copy(self) -> None:
        if (field := focused_field()) is not None:
            field.copy()
        else:
            self._view.selection.copy()

    def paste(self) -> None:
        if (field := focused_field()) is not None:
            field.paste()

    def select_all(self) -> None:
        if (field := focused_field()) is not None:
            field.selectAll()
        else:
            self._view.selection.select_all()


def can_undo_typing() -> bool:
    """Return True if the focused text field has something to undo."""
    field = focused_field()
    return field is not None and _can_undo(field)


def can_redo_typing() -> bool:
    """Return True if the focused text field has something to redo."""
    field = focused_field()
    return field is not None and _can_redo(field)


def has_text(field: QLineEdit | QPlainTextEdit | QTextEdit) -> bool:
    return bool(field.text() if isinstance(field, QLineEdit) else field.toPlainText())


def focused_field() -> QLineEdit | QPlainTextEdit | QTextEdit | None:
    """Return the text field that has the focus, or None."""
    widget = QApplication.focusWidget()
    return widget if isinstance(widget, (QLineEdit, QPlainTextEdit, QTextEdit)) else None


def _can_undo(field: QLineEdit | QPlainTextEdit | QTextEdit) -> bool:
    if isinstance(field, QLineEdit):
        return field.isUndoAvailable()
    return field.document().isUndoAvailable()


def _can_redo(field: QLineEdit | QPlainTextEdit | QTextEdit) -> bool:
    if isinstance(field, QLineEdit):
        return field.isRedoAvailable()
    return field.document().isRedoAvailable()
