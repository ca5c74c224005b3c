"""Conversations that are not listed yet: how they begin, and their places. Main thread.

A new conversation is listed after its first change. One that becomes as it began is taken out
again.
"""

from __future__ import annotations

from dataclasses import replace

from app.controllers.desk import Desk
from app.controllers.folders import FoldersController
from app.controllers.origin import Origin
from app.conversation.placement import NO_PLACE, FolderId, Placement
from app.conversation.tree import Conversation, ConversationSummary, new_conversation
from engine.types import ConversationId


class NewChats:
    """The newest conversation, as it began, and the places of conversations that are not listed."""

    def __init__(self, desk: Desk, folders: FoldersController, origin: Origin) -> None:
        self._desk = desk
        self._folders = folders
        self._origin = origin
        self._places: dict[ConversationId, Placement] = {}
        self._newest: Conversation | None = None

    def begin(self, folder_id: FolderId | None = None) -> ConversationId:
        """Add a new conversation to the desk."""
        conversation_id = ConversationId(self._origin.new_id())
        conversation = new_conversation(conversation_id, now=self._origin.now())
        self._places = {conversation_id: Placement(folder_id=folder_id)}
        self._desk.add(self._begun(conversation, folder_id))
        return conversation_id

    def begin_again(self) -> None:
        """Apply the defaults, which have changed, to the newest conversation."""
        if self._newest is not None:
            folder_id = self.place(self._newest.conversation_id).folder_id
            self._desk.add(self._begun(self._newest, folder_id))

    def is_blank(self, conversation: Conversation) -> bool:
        """Return True if the conversation is new and has not changed since its creation."""
        return conversation == self._newest

    def is_emptied(self, conversation: Conversation, listed: ConversationSummary | None) -> bool:
        """Return True if a listed conversation is as it was when it began, and is not pinned."""
        if listed is None or conversation.nodes or conversation.draft.strip():
            return False
        folder_id = listed.placement.folder_id
        begun = new_conversation(conversation.conversation_id, now=conversation.created_at)
        begun = self._folders.begin_conversation(begun, folder_id)
        is_alike = replace(conversation, draft="") == begun
        return is_alike and listed.placement == Placement(folder_id=folder_id)

    def take_back(self, conversation: Conversation, place: Placement) -> None:
        """Make an emptied conversation, which is on show, the newest one."""
        self._places = {conversation.conversation_id: place}
        self._newest = conversation

    def place(self, conversation_id: ConversationId) -> Placement:
        return self._places.get(conversation_id, NO_PLACE)

    def set_place(self, conversation_id: ConversationId, place: Placement) -> None:
        """Set the place at which a conversation is going to be listed."""
        self._places[conversation_id] = place

    def take_place(self, conversation_id: ConversationId, default: Placement) -> Placement:
        """Remove and return the place of a conversation that is listed now."""
        return self._places.pop(conversation_id, default)

    def _begun(self, conversation: Conversation, folder_id: FolderId | None) -> Conversation:
        self._newest = self._folders.begin_conversation(conversation, folder_id)
        return self._newest
