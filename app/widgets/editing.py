"""The text commands of the Edit menu (Undo to Select All), applied to the focused text field."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QLineEdit,
    QMenu,
    QPlainTextEdit,
    QTextEdit,
)

from app.controllers.undoing import Undoing
from app.widgets.answers.area import ReadingArea
from app.widgets.commands import Actions, CommandId, connect_actions


class TextCommands(QObject):
    """The Edit menu's text commands.

    The commands act on the focused text field. Without a focused text field, Copy and Select All
    act on the transcript, or on the answer in focus while answers cover it; Select All acts on the
    list of chats if that has the focus. If no focused field has anything to undo, Undo reverts an
    action of the app, such as the deletion of a chat. Redo does the same.
    """

    def __init__(
        self, area: ReadingArea, chats: QAbstractItemView, undoing: Undoing, actions: Actions
    ) -> None:
        super().__init__(area)
        self._area = area
        self._chats = chats
        self._undoing = undoing
        slots = {
            CommandId.UNDO: self._undo,
            CommandId.REDO: self._redo,
            CommandId.CUT: self._cut,
            CommandId.COPY: self._copy,
            CommandId.PASTE: self._paste,
            CommandId.SELECT_ALL: self._select_all,
        }
        connect_actions(actions, slots)

    def _undo(self) -> None:
        field = focused_field()
        if field is not None and _can_undo(field):
            field.undo()
        else:
            self._undoing.undo()

    def _redo(self) -> None:
        field = focused_field()
        if field is not None and _can_redo(field):
            field.redo()
        else:
            self._undoing.redo()

    def _cut(self) -> None:
        if (field := focused_field()) is not None:
            field.cut()

    def _copy(self) -> None:
        if (field := focused_field()) is not None:
            field.copy()
        else:
            self._area.text_view.selection.copy()

    def _paste(self) -> None:
        if (field := focused_field()) is not None:
            field.paste()

    def _select_all(self) -> None:
        if (field := focused_field()) is not None:
            field.selectAll()
        elif self._chats.hasFocus():
            self._chats.selectAll()
        else:
            self._area.text_view.selection.select_all()


class PossibleEdits(QObject):
    """Switches off the commands of the open Edit menu that would do nothing.

    An action that is off ignores its keys, and text changes at any time. So all are on while the
    menu is closed.
    """

    def __init__(self, area: ReadingArea, undoing: Undoing, actions: Actions, menu: QMenu) -> None:
        super().__init__(menu)
        self._area = area
        self._undoing = undoing
        self._actions = actions
        menu.aboutToShow.connect(self._show_possible)
        menu.aboutToHide.connect(self._enable_all)

    def _show_possible(self) -> None:
        field = focused_field()
        text = self._area.text_view.selection
        is_selected = not text.is_empty if field is None else _has_selection(field)
        possible = {
            CommandId.UNDO: can_undo_typing() or self._undoing.name,
            CommandId.REDO: can_redo_typing() or self._undoing.redo_name,
            CommandId.CUT: is_selected and field is not None and not field.isReadOnly(),
            CommandId.COPY: is_selected,
        }
        for command, is_possible in possible.items():
            self._actions[command].setEnabled(bool(is_possible))

    def _enable_all(self) -> None:
        for command in (CommandId.UNDO, CommandId.REDO, CommandId.CUT, CommandId.COPY):
            self._actions[command].setEnabled(True)


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


def _has_selection(field: QLineEdit | QPlainTextEdit | QTextEdit) -> bool:
    return (
        field.hasSelectedText()
        if isinstance(field, QLineEdit)
        else field.textCursor().hasSelection()
    )


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
