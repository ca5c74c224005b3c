"""The deleted conversations that can be restored, each with the undo of its deletion. Main thread.

LibraryController deletes and restores conversations, Deletions (deletions.py) adds the undo, and
RecentlyDeleted (recently_deleted.py) shows the list of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace

from PySide6.QtCore import QObject, Signal

from app.bridge.store_lane import StoreLane
from app.controllers.desk import Desk
from app.controllers.listed_chats import ListedChats
from app.controllers.turns import Turns
from app.controllers.undo import UndoList
from app.conversation.tree import ConversationSummary, DeletedConversation
from app.store.conversations import ConversationStore
from engine.problem import Problem
from engine.types import ConversationId


class DeletedChats(QObject):
    """The conversations that are deleted and not yet removed for good."""

    changed = Signal()
    removed = Signal(object)  # argument: ConversationId of a conversation that was removed for good
    # argument: frozenset of digests of the pictures that removed conversations had
    left_pictures = Signal(object)

    def __init__(
        self,
        store: StoreLane,
        desk: Desk,
        turns: Turns,
        listed: ListedChats,
        undo: UndoList,
        on_error: Callable[[Problem], None],
    ) -> None:
        super().__init__()
        self._store = store
        self._desk = desk
        self._turns = turns
        self._listed = listed
        self._undo = undo
        self._on_error = on_error
        self._deleted: dict[ConversationId, DeletedConversation] = {}
        # The functions in the undo list that restore them, if there are any.
        self._undos: dict[ConversationId, Callable[[], object]] = {}

    def __contains__(self, conversation_id: ConversationId) -> bool:
        return conversation_id in self._deleted

    @property
    def all(self) -> list[DeletedConversation]:
        """The deleted conversations, in any order."""
        return list(self._deleted.values())

    def summary(self, conversation_id: ConversationId) -> ConversationSummary:
        return self._deleted[conversation_id].summary

    def add_stored(self, deleted: DeletedConversation) -> None:
        """Add a conversation that was deleted in an earlier run of the app."""
        self._deleted[deleted.summary.conversation_id] = deleted

    def update(self, summary: ConversationSummary) -> None:
        """Replace the summary of a deleted conversation. The caller emits `changed` if needed."""
        deleted = self._deleted[summary.conversation_id]
        self._deleted[summary.conversation_id] = replace(deleted, summary=summary)

    def note_undo(
        self, conversation_ids: Iterable[ConversationId], undo: Callable[[], object]
    ) -> None:
        """Note the function of the undo list that restores these conversations."""
        self._undos.update(dict.fromkeys(conversation_ids, undo))

    def delete(
        self, conversation_ids: Iterable[ConversationId], *, now: float
    ) -> tuple[ConversationSummary, ...]:
        """Delete those conversations that are listed, and stop their answers.

        Return their summaries. The caller emits `changed` after it has reported the new list.
        """
        listed = tuple(one for one in conversation_ids if one in self._listed)
        summaries = tuple(map(self._listed.take, listed))
        # Add the conversations before stop(). stop() may change a conversation, and a changed
        # conversation is listed again unless it is deleted.
        for summary in summaries:
            deleted = DeletedConversation(summary=summary, deleted_at=now)
            self._deleted[summary.conversation_id] = deleted
        for conversation_id in listed:
            self._turns.stop(conversation_id)
        if listed:
            self._store.run(lambda store: store.delete_all(listed, now=now), None, self._on_error)
        return summaries

    def restore(self, conversation_ids: Iterable[ConversationId]) -> tuple[ConversationId, ...]:
        """List and store those conversations again that are deleted. Return their ids."""
        gone = tuple(one for one in conversation_ids if one in self._deleted)
        if gone:
            for conversation_id in gone:
                self._listed.put(self._end(conversation_id))
            self._store.run(lambda store: store.restore_all(gone), None, self._on_error)
            self.changed.emit()
        return gone

    def note_restored(self, stored: Iterable[ConversationSummary]) -> None:
        """List those of the stored conversations that an import has restored."""
        for summary in stored:
            if summary.conversation_id in self._deleted:
                self._end(summary.conversation_id)
                self._listed.put(summary)
        self.changed.emit()

    def remove_all(self, conversation_ids: Iterable[ConversationId]) -> None:
        """Remove deleted conversations for good.

        Skip those that have been restored, and those whose answer is still being stopped.
        """
        stopping = self._turns.answering
        gone = [one for one in conversation_ids if one in self._deleted and one not in stopping]
        for conversation_id in gone:
            self._end(conversation_id)
            self._desk.drop(conversation_id)
            self.removed.emit(conversation_id)
        if gone:
            self._store.run(lambda store: store.mark_removed(gone), None, self._on_error)
            self._store.run_aside(Removal(gone).step, self._on_removed, self._on_error)
            self.changed.emit()

    def _on_removed(self, pictures: frozenset[str]) -> None:
        if pictures:
            self.left_pictures.emit(pictures)

    def _end(self, conversation_id: ConversationId) -> ConversationSummary:
        """Take out a conversation that is restored, or removed for good. Return its summary."""
        summary = self._deleted.pop(conversation_id).summary
        undo = self._undos.pop(conversation_id, None)
        # The function restores several conversations. It stays as long as one of them is deleted.
        if undo is not None and undo not in self._undos.values():
            self._undo.drop(undo)
        return summary


class Removal:
    """The removal of conversations from the database. Only the store thread uses it."""

    def __init__(self, conversation_ids: Iterable[ConversationId]) -> None:
        self._left = deque(conversation_ids)
        self._pictures: set[str] = set()  # digests of the pictures of all conversations

    def step(self, store: ConversationStore) -> frozenset[str] | None:
        """Remove a slice of a conversation. After the last one return the pictures' digests."""
        self._pictures |= store.picture_digests(self._left[0])
        if not store.remove_slice(self._left[0]):
            self._left.popleft()
        return None if self._left else frozenset(self._pictures)
