"""The deleted conversations that can be restored, each with the undo of its deletion. Main thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace

from app.controllers.undo import UndoList
from app.conversation.tree import ConversationSummary, DeletedConversation
from app.store.conversations import ConversationStore
from engine.types import ConversationId


class DeletedChats:
    """The conversations that are deleted and not yet removed for good."""

    def __init__(self, undo: UndoList) -> None:
        self._undo = undo
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

    def add(self, deleted: DeletedConversation) -> None:
        self._deleted[deleted.summary.conversation_id] = deleted

    def update(self, summary: ConversationSummary) -> None:
        """Replace the summary of a deleted conversation."""
        deleted = self._deleted[summary.conversation_id]
        self._deleted[summary.conversation_id] = replace(deleted, summary=summary)

    def note_undo(
        self, conversation_ids: Iterable[ConversationId], undo: Callable[[], object]
    ) -> None:
        """Note the function of the undo list that restores these conversations."""
        self._undos.update(dict.fromkeys(conversation_ids, undo))

    def end(self, conversation_id: ConversationId) -> ConversationSummary:
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

    def step(self, store: ConversationStore) -> bool | None:
        """Remove a slice of a conversation. Return True after the last one."""
        if not store.remove_slice(self._left[0]):
            self._left.popleft()
        return None if self._left else True
