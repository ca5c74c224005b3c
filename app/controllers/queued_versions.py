"""Versions of answers that the user requested while an answer stops. Main thread.

The engine may take seconds to end a stopped answer. The version is requested as soon as the answer
has ended, unless the user has sent a message or stopped the answer again in the meantime.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject

from app.controllers.desk import Desk
from app.controllers.turns import Turns
from app.conversation.tree import NodeId, shown_path
from engine.types import ConversationId


class QueuedVersions(QObject):
    """Requests versions when their time has come. One a conversation."""

    def __init__(
        self,
        desk: Desk,
        turns: Turns,
        regenerate: Callable[[ConversationId, NodeId, int], object],
    ) -> None:
        """Create an empty queue.

        Args:
            desk: has the conversations.
            turns: the answers that are waited for.
            regenerate: requests versions of a reply, as many as its last argument.
        """
        super().__init__()
        self._desk = desk
        self._turns = turns
        self._regenerate = regenerate
        # Value: the stopped reply, and the number of answers.
        self._queued: dict[ConversationId, tuple[NodeId, int]] = {}
        turns.stop_requested.connect(self._on_stop_requested)
        turns.activity_changed.connect(self._on_activity_changed)

    def add(self, conversation_id: ConversationId, reply_id: NodeId, answers: int) -> None:
        """Queue versions of a reply that was stopped and has not ended."""
        self._queued[conversation_id] = reply_id, answers

    def _on_stop_requested(self, conversation_id: ConversationId) -> None:
        self._queued.pop(conversation_id, None)

    def _on_activity_changed(self, conversation_id: ConversationId) -> None:
        """Request the queued versions, unless a message was sent since.

        Do nothing if the turn was refused: its message is in the composer again.
        """
        if self._turns.is_stopping(conversation_id):
            return
        reply_id, answers = self._queued.pop(conversation_id, (None, 1))
        # A chat that was left may be closed once its answer has ended.
        if reply_id is None or self._turns.ends.is_quitting or conversation_id not in self._desk:
            return
        conversation = self._desk.get(conversation_id)
        reply = conversation.nodes.get(reply_id)
        if reply is None:
            return
        # The reply itself, or the version before it: a new version without text was removed.
        shown = shown_path(conversation)[-1]
        if shown.parent == reply.parent:
            self._regenerate(conversation_id, shown.node_id, answers)
