"""Cached state of several answers to one message, after they have ended. Main thread.

Each answer but the first is a conversation of its own to the engine (answer_id). Once all have
ended, the chat takes over the state of its versions, and continues with any of them without reading
it again. If the user has picked one, the state of the others is dropped.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.bridge.engine_bridge import EngineBridge
from app.controllers.turns import Turns
from app.conversation.tree import NodeId
from engine.types import ConversationId, answer_id


class AnswerSets(QObject):
    """The conversations with several running answers."""

    # argument: ConversationId of a conversation whose several answers have all ended
    ended = Signal(object)

    def __init__(self, bridge: EngineBridge, turns: Turns) -> None:
        """Connect to the turns.

        Create this object before any controller that starts turns at the end of others. The answers
        of the next turns have the same ids again.
        """
        super().__init__()
        self._engine = bridge.engine
        self._turns = turns
        # The replies of the answers to one message, in the order of their numbers, until all have
        # ended.
        self._replies: dict[ConversationId, tuple[NodeId, ...]] = {}
        # The reply that the user has picked of them
        self._picked: dict[ConversationId, NodeId] = {}
        turns.activity_changed.connect(self._on_activity_changed)

    def note_pick(self, conversation_id: ConversationId, reply_id: NodeId) -> None:
        """Note that the user has picked one of several answers."""
        if conversation_id in self._replies:
            self._picked[conversation_id] = reply_id

    def _on_activity_changed(self, conversation_id: ConversationId) -> None:
        running = self._turns.replies_in(conversation_id)
        if conversation_id not in self._replies:
            if len(running) > 1:
                self._replies[conversation_id] = running
            return
        if running or self._turns.ends.is_quitting:
            return
        picked = self._picked.pop(conversation_id, None)
        for number, reply_id in enumerate(self._replies.pop(conversation_id), 1):
            if number > 1:
                is_kept = picked in (None, reply_id)
                heir = conversation_id if is_kept else None
                self._engine.forget(answer_id(conversation_id, number), heir=heir)
        # The engine reads ahead for the first answer only, and another one may be on show.
        self.ended.emit(conversation_id)
