"""The texts of the commands Undo and Redo, which name the action to undo or redo. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication, QMenu

from app.controllers.undoing import Undoing
from app.widgets.editing import can_redo_typing, can_undo_typing
from app.words import undo as words


class UndoNames(QObject):
    """Keeps the texts of the two commands up to date. It is a child of the command Undo."""

    def __init__(self, undo: QAction, redo: QAction, menu: QMenu, undoing: Undoing) -> None:
        super().__init__(undo)
        self._undo = undo
        self._redo = redo
        self._undoing = undoing
        menu.aboutToShow.connect(self._refresh)
        undoing.names_changed.connect(self._refresh)
        app = QApplication.instance()
        if isinstance(app, QApplication):
            app.focusChanged.connect(self._refresh)

    def _refresh(self) -> None:
        undoes = words.TYPING if can_undo_typing() else self._undoing.name
        redoes = words.TYPING if can_redo_typing() else self._undoing.redo_name
        self._undo.setText(words.undo(undoes))
        self._redo.setText(words.redo(redoes))
