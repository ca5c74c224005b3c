"""The lists of actions that the user can undo and redo. Main thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from engine.types import ConversationId

# Number of actions that can be undone. An entry may hold the texts of attached files, up to 4
# million characters each.
MAX_ENTRIES = 100
# Undo restores what was deleted in an earlier run of the app, for this many seconds.
UNDO_KEPT_S = 3600


@dataclass(frozen=True, slots=True, eq=False)
class UndoEntry:
    """An action that the user can undo, or redo."""

    name: str  # for the menu, for example "Rename Chat"
    # undoes the action, once; returns False if the action could not be undone now
    undo: Callable[[], bool]
    # does the undone action again, once; returns False if it could not be done now
    redo: Callable[[], bool]
    # the conversation in which the action was done; None: it was done in the list of conversations
    chat: ConversationId | None
    # True: the action is undone only while its conversation is on show
    stays: bool = False


class UndoList(QObject):
    """Two stacks of actions: those to undo, and those that were undone and can be done again."""

    changed = Signal()
    # emitted before an undo or a redo changes a draft, so that the text typed since is saved first
    starting = Signal()
    # argument: the function that add() returned for an action that is undone, or cannot be undone
    undone = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._entries: list[UndoEntry] = []
        self._undone: list[UndoEntry] = []

    @property
    def entries(self) -> Sequence[UndoEntry]:
        """The actions that can be undone, oldest first."""
        return self._entries

    @property
    def undone_entries(self) -> Sequence[UndoEntry]:
        """The actions that can be redone; the one that was undone last is the last one."""
        return self._undone

    def add(
        self,
        name: str,
        undo: Callable[[], object],
        chat: ConversationId | None = None,
        *,
        redo: Callable[[], object] | None = None,
        stays: bool = False,
    ) -> Callable[[], object]:
        """Add the newest action. See UndoEntry for its fields.

        `undo` returns False if the action cannot be undone now. The action then stays in the list.
        The same holds for `redo`; None if the action cannot be redone. A new action ends the redo
        of earlier ones in its conversation and in the list of conversations.

        Returns:
            A function that undoes this action, also after later actions.
        """

        def undo_this() -> bool:
            if not self._run(entry, undo, self._entries):
                return False
            if redo is not None:
                self._undone.append(entry)
            self.undone.emit(undo_this)
            self.changed.emit()
            return True

        def redo_this() -> bool:
            if redo is None or not self._run(entry, redo, self._undone):
                return False
            self._entries.append(entry)
            self.changed.emit()
            return True

        entry = UndoEntry(name, undo_this, redo_this, chat, stays)
        self._entries.append(entry)
        del self._entries[:-MAX_ENTRIES]
        over = (chat, None)
        kept = () if chat is None else (one for one in self._undone if one.chat not in over)
        self._undone = list(kept)
        self.changed.emit()
        return undo_this

    def _run(self, entry: UndoEntry, step: Callable[[], object], entries: list[UndoEntry]) -> bool:
        """Remove an entry from its list and call its function, unless it is not there."""
        if entry not in entries:
            return False
        self.starting.emit()
        place = entries.index(entry)
        entries.remove(entry)
        if step() is False:
            entries.insert(place, entry)
            return False
        return True

    def drop(self, undo: Callable[[], object], *, drops_redo: bool = False) -> None:
        """Remove a function that add() returned, because its action cannot be undone any more.

        drops_redo: True if the action cannot be redone either, in case that it was undone before.
        """
        for entries in (self._entries, self._undone) if drops_redo else (self._entries,):
            for entry in entries:
                if entry.undo is undo:
                    entries.remove(entry)
                    self.undone.emit(undo)
                    self.changed.emit()
                    return

    def forget(self, chat: ConversationId) -> None:
        """Remove the actions of a conversation that was removed for good."""
        self._entries[:] = [one for one in self._entries if one.chat != chat]
        self._undone[:] = [one for one in self._undone if one.chat != chat]
        self.changed.emit()
