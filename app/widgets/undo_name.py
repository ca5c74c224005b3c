"""The text of the command Undo, which names the action that it undoes. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication, QMenu

from app.controllers.undoing import Undoing
from app.widgets.editing import can_undo_typing
from app.words import undo as words


class UndoName(QObject):
    """Keeps the text of the command up to date. It is a child of the command's action."""

    def __init__(self, action: QAction, menu: QMenu, undoing: Undoing) -> None:
        super().__init__(action)
        self._action = action
        self._undoing = undoing
        menu.aboutToShow.connect(self._refresh)
        undoing.name_changed.connect(self._refresh)
        app = QApplication.instance()
        if isinstance(app, QApplication):
            app.focusChanged.connect(self._refresh)

    def _refresh(self) -> None:
        name = words.TYPING if can_undo_typing() else self._undoing.name
        self._action.setText(words.undo(name))
