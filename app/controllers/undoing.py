"""The commands Undo and Redo: their action depends on the conversation on show. Main thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, Signal

from app.controllers.desk import Desk
from app.controllers.library import LibraryController
from app.controllers.sending import UndoSend
from app.controllers.undo import UndoEntry, UndoList
from engine.types import ConversationId


class Undoing(QObject):
    """Undoes one action after the other, the newest first, and redoes them in the opposite order.

    Actions in the conversation on show and in the list of conversations come first. Then the
    actions in other conversations follow, which are shown for it, but for those that stay.
    """

    names_changed = Signal()
    undone = Signal(str)  # argument: name of the action
    redone = Signal(str)  # argument: name of the action

    def __init__(
        self, actions: UndoList, library: LibraryController, desk: Desk, sending: UndoSend
    ) -> None:
        super().__init__()
        self.sending = sending
        self._actions = actions
        self._library = library
        self._desk = desk
        actions.changed.connect(self.names_changed)
        library.current_changed.connect(self.names_changed)
        library.deleted.removed.connect(self._forget)

    @property
    def name(self) -> str:
        """The name of the action that undo() would undo; empty if there is none."""
        entry = self._next(self._actions.entries)
        return "" if entry is None else entry.name

    @property
    def redo_name(self) -> str:
        """The name of the action that redo() would redo; empty if there is none."""
        entry = self._next(self._actions.undone_entries)
        return "" if entry is None else entry.name

    def undo(self) -> None:
        """Undo the next action, and show its conversation. Do nothing if there is none."""
        entry = self._next(self._actions.entries)
        if entry is not None:
            self._show_and_run(entry, entry.undo, self.undone.emit)

    def redo(self) -> None:
        """Redo the action that was undone last, and show its conversation."""
        entry = self._next(self._actions.undone_entries)
        if entry is not None:
            self._show_and_run(entry, entry.redo, self.redone.emit)

    def _forget(self, conversation_id: ConversationId) -> None:
        self._actions.forget(conversation_id)
        self.sending.forget(conversation_id)

    def _show_and_run(
        self, entry: UndoEntry, step: Callable[[], bool], done: Callable[[str], object]
    ) -> None:
        def run(_conversation: object = None) -> None:
            if step():
                done(entry.name)

        if entry.chat is None:
            run()
        else:
            self._library.select(entry.chat)
            # select() reports a conversation that cannot be loaded.
            self._desk.open(entry.chat, run, lambda _problem: None)

    def _next(self, entries: Sequence[UndoEntry]) -> UndoEntry | None:
        elsewhere = None
        for entry in reversed(entries):
            if entry.chat is None or entry.chat == self._library.current:
                return entry
            if elsewhere is None and not entry.stays and entry.chat in self._library.listed:
                elsewhere = entry
        return elsewhere
