"""The list of actions that the user can undo, newest first. Main thread."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal


class UndoList(QObject):
    """A stack of functions, each of which undoes one action. A function runs at most once."""

    # argument: the function that add() returned for an action that is undone, or cannot be undone
    undone = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._entries: list[Callable[[], object]] = []

    def add(self, undo: Callable[[], object]) -> Callable[[], object]:
        """Add the function that undoes the newest action.

        Returns:
            A function that undoes this action, also after later actions.
        """

        def undo_this() -> None:
            if undo_this in self._entries:
                self._entries.remove(undo_this)
                undo()
                self.undone.emit(undo_this)

        self._entries.append(undo_this)
        return undo_this

    def drop(self, undo: Callable[[], object]) -> None:
        """Remove a function that add() returned, because its action cannot be undone any more."""
        if undo in self._entries:
            self._entries.remove(undo)
            self.undone.emit(undo)

    def undo_newest(self) -> None:
        if self._entries:
            self._entries[-1]()
