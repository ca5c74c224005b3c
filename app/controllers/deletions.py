"""The deletion of conversations as an action that the user can undo. Main thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from PySide6.QtCore import QObject, Signal

from app.bridge.store_lane import StoreLane
from app.controllers.desk import Desk
from app.controllers.library import LibraryController
from app.controllers.origin import Origin
from app.controllers.undo import UNDO_KEPT_S, UndoList
from app.conversation.tree import DeletedConversation
from app.words import undo as undo_words
from engine.types import ConversationId


class Deletions(QObject):
    """Deletes conversations, and puts their restoration into the list of undoable actions."""

    # arguments: tuple of ConversationSummary, function that undoes the deletion. Not emitted for a
    # redo.
    deleted = Signal(object, object)
    failed = Signal(object)  # argument: a Problem

    def __init__(
        self,
        store: StoreLane,
        desk: Desk,
        library: LibraryController,
        undo: UndoList,
        origin: Origin,
    ) -> None:
        super().__init__()
        self._store = store
        self._desk = desk
        self._library = library
        self._undo = undo
        self._origin = origin

    def start(self) -> None:
        """Load the deleted conversations. Call this after LibraryController.start()."""
        self._store.run(lambda store: store.deleted(), self._on_loaded, self.failed.emit)

    def delete_all(
        self,
        conversation_ids: Iterable[ConversationId],
        following: ConversationId | None = None,
    ) -> None:
        """Delete conversations and stop their answers; one undo restores all of them.

        If one of them was on show, show `following`, or a new conversation. An undo shows that one
        again, because restore_all() shows the first one.
        """
        shown_first = sorted(conversation_ids, key=lambda one: one != self._library.current)
        summaries = self._library.discard_all(shown_first, following)
        if summaries:
            undo = self._add_undo(tuple(one.conversation_id for one in summaries), following)
            self.deleted.emit(summaries, undo)

    def _add_undo(
        self,
        conversation_ids: tuple[ConversationId, ...],
        following: ConversationId | None = None,
    ) -> Callable[[], object]:
        def delete_again() -> None:
            if self._library.discard_all(conversation_ids, following):
                self._library.deleted.note_undo(conversation_ids, undo)

        undo = self._undo.add(
            undo_words.delete(len(conversation_ids)),
            partial(self._library.restore_all, conversation_ids),
            redo=delete_again,
        )
        self._library.deleted.note_undo(conversation_ids, undo)
        return undo

    def _on_loaded(self, stored: tuple[DeletedConversation, ...]) -> None:
        """List the deleted conversations. Undo restores those deleted a short time ago."""
        now, deleted = self._origin.now(), self._library.deleted
        for one in reversed(stored):
            conversation_id = one.summary.conversation_id
            if conversation_id in deleted or conversation_id in self._desk:
                continue
            deleted.add_stored(one)
            if now - one.deleted_at < UNDO_KEPT_S:
                self._add_undo((conversation_id,))
        deleted.changed.emit()
