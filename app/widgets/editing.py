"""The text commands of the Edit menu (Undo to Select All), applied to the focused text field."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication, QLineEdit, QPlainTextEdit, QTextEdit

from app.controllers.undo import UndoList
from app.widgets.transcript.view import TranscriptView


class TextCommands:
    """The slots of the Edit menu's text commands.

    The commands act on the focused text field. Without a focused text field, Copy and Select All
    act on the transcript. If no focused field has anything to undo, Undo reverts the newest entry
    of the app's undo list, such as the deletion of a chat.
    """

    def __init__(self, view: TranscriptView, undo_list: UndoList) -> None:
        self._view = view
        self._undo_list = undo_list

    def undo(self) -> None:
        field = _focused()
        if field is not None and _can_undo(field):
            field.undo()
        else:
            self._undo_list.undo_newest()

    def redo(self) -> None:
        if (field := _focused()) is not None:
            field.redo()

    def cut(self) -> None:
        if (field := _focused()) is not None:
            field.cut()

    def copy(self) -> None:
        if (field := _focused()) is not None:
            field.copy()
        else:
            self._view.copy_selection()

    def paste(self) -> None:
        if (field := _focused()) is not None:
            field.paste()

    def select_all(self) -> None:
        if (field := _focused()) is not None:
            field.selectAll()
        else:
            self._view.select_all()


def _focused() -> QLineEdit | QPlainTextEdit | QTextEdit | None:
    widget = QApplication.focusWidget()
    return widget if isinstance(widget, (QLineEdit, QPlainTextEdit, QTextEdit)) else None


def _can_undo(field: QLineEdit | QPlainTextEdit | QTextEdit) -> bool:
    if isinstance(field, QLineEdit):
        return field.isUndoAvailable()
    return field.document().isUndoAvailable()
