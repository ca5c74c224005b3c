"""The list of actions that the user can undo, newest first. Main thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from engine.types import ConversationId


@dataclass(frozen=True, slots=True, eq=False)
class UndoEntry:
    """An action that the user can undo."""

    name: str  # for the menu, for example "Rename Chat"
    # undoes the action, once; returns False if the action could not be undone now
    undo: Callable[[], bool]
    # the conversation in which the action was done; None: it was done in the list of conversations
    chat: ConversationId | None


class UndoList(QObject):
    """A stack of functions, each of which undoes one action. A function runs at most once."""

    changed = Signal()
    # argument: the function that add() returned for an action that is undone, or cannot be undone
    undone = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._entries: list[UndoEntry] = []

    @property
    def entries(self) -> Sequence[UndoEntry]:
        """The actions, oldest first."""
        return self._entries

    def add(
        self, name: str, undo: Callable[[], object], chat: ConversationId | None = None
    ) -> Callable[[], object]:
        """Add the newest action. See UndoEntry for its fields.

        `undo` returns False if the action cannot be undone now. The action then stays in the list.

        Returns:
            A function that undoes this action, also after later actions.
        """

        def undo_this() -> bool:
            if entry not in self._entries:
                return False
            place = self._entries.index(entry)
            self._entries.remove(entry)
            if undo() is False:
                self._entries.insert(place, entry)
                return False
            self.undone.emit(undo_this)
            self.changed.emit()
            return True

        entry = UndoEntry(name, undo_this, chat)
        self._entries.append(entry)
        self.changed.emit()
        return undo_this

    def drop(self, undo: Callable[[], object]) -> None:
        """Remove a function that add() returned, because its action cannot be undone any more."""
        for entry in self._entries:
            if entry.undo is undo:
                self._entries.remove(entry)
                self.undone.emit(undo)
                self.changed.emit()
                return
