"""The command Undo: which action it undoes, by the conversation on show. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.controllers.library import LibraryController
from app.controllers.undo import UndoEntry, UndoList


class Undoing(QObject):
    """Undoes one action after the other, the newest first.

    Actions in the conversation on show and in the list of conversations come first. Then the actions
    in other conversations follow, which are shown for it.
    """

    name_changed = Signal()
    undone = Signal(str)  # argument: name of the action

    def __init__(self, actions: UndoList, library: LibraryController) -> None:
        super().__init__()
        self._actions = actions
        self._library = library
        actions.changed.connect(self.name_changed)
        library.current_changed.connect(self.name_changed)

    @property
    def name(self) -> str:
        """The name of the action that undo() would undo; empty if there is none."""
        entry = self._next
        return "" if entry is None else entry.name

    def undo(self) -> None:
        """Undo the next action, and show its conversation. Do nothing if there is none."""
        entry = self._next
        if entry is None:
            return
        if entry.chat is not None:
            self._library.select(entry.chat)
        if entry.undo():
            self.undone.emit(entry.name)

    @property
    def _next(self) -> UndoEntry | None:
        elsewhere = None
        for entry in reversed(self._actions.entries):
            if entry.chat is None or entry.chat == self._library.current:
                return entry
            if elsewhere is None and self._library.is_listed(entry.chat):
                elsewhere = entry
        return elsewhere
