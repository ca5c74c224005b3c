"""The summaries of all listed conversations, archived ones too. Main thread.

LibraryController, and DeletedChats on its behalf, change the list. Other objects only read it.
"""

from __future__ import annotations

from app.conversation.tree import ConversationSummary
from app.settings import ChatOrder
from app.viewmodels.sections import sort_chats
from engine.types import ConversationId


class ListedChats:
    """The summaries, by id and in order. A new conversation is listed after its first change."""

    def __init__(self) -> None:
        self._summaries: dict[ConversationId, ConversationSummary] = {}
        # All summaries, newest first; None after a change.
        self._sorted: list[ConversationSummary] | None = None

    def __contains__(self, conversation_id: ConversationId) -> bool:
        return conversation_id in self._summaries

    def __len__(self) -> int:
        return len(self._summaries)

    @property
    def all(self) -> list[ConversationSummary]:
        """All summaries, newest first."""
        if self._sorted is None:
            self._sorted = sort_chats(self._summaries.values(), ChatOrder.RECENT)
        return self._sorted

    @property
    def unarchived(self) -> list[ConversationSummary]:
        """The summaries of the conversations that are not archived, newest first."""
        return [one for one in self.all if not one.placement.archived]

    @property
    def archived(self) -> list[ConversationSummary]:
        """The summaries of the archived conversations, newest first."""
        return [one for one in self.all if one.placement.archived]

    @property
    def kept_ready(self) -> frozenset[ConversationId]:
        """The pinned conversations. The engine evicts their cached state last."""
        return frozenset(one.conversation_id for one in self._summaries.values() if one.keep_ready)

    def summary(self, conversation_id: ConversationId) -> ConversationSummary:
        """Return the summary of a listed conversation."""
        return self._summaries[conversation_id]

    def get(self, conversation_id: ConversationId) -> ConversationSummary | None:
        """Return the summary of a conversation, or None if it is not listed."""
        return self._summaries.get(conversation_id)

    def put(self, summary: ConversationSummary) -> None:
        """List a conversation, or replace its summary."""
        self._summaries[summary.conversation_id] = summary
        self._sorted = None

    def take(self, conversation_id: ConversationId) -> ConversationSummary:
        """Remove a conversation from the list. Return its summary."""
        self._sorted = None
        return self._summaries.pop(conversation_id)
