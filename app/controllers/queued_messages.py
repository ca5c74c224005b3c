"""The messages that were sent during an answer, and wait for its end. Main thread.

desk.py stores them, as part of the drafts. A queued message is sent when the answer that it waits
for is complete. It returns to the composer if that answer fails, if another version is shown, or at
a stop of the answer. The engine may take seconds to end a stopped answer: a message that is sent in
this time is sent when the answer has ended.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from PySide6.QtCore import QObject, Signal

from app.controllers.desk import Desk
from app.controllers.turns import Turns
from app.conversation.tree import Conversation, MessageStatus, NodeId, shown_path
from app.conversation.unsent import Unsent, with_unsent
from engine.types import ConversationId


class _Awaited(NamedTuple):
    """The reply that a queued message waits for."""

    reply_id: NodeId
    versions: tuple[NodeId, ...]  # the answers that were requested together with it, and itself
    is_stopping: bool  # True if the user had stopped the reply before the message was sent
    answers: int  # number of answers to the queued message


class QueuedMessages(QObject):
    """Queues messages, sends them when their time has come, or returns them. One a conversation."""

    # argument: ConversationId of a conversation whose queued message has changed or is gone
    changed = Signal(object)
    # arguments: ConversationId, text of a queued message that was not sent. It is in the stored
    # draft.
    returned = Signal(object, str)

    def __init__(
        self,
        desk: Desk,
        turns: Turns,
        send: Callable[[ConversationId, Unsent, Unsent, int], bool],
        drop_empty_version: Callable[[ConversationId], None],
    ) -> None:
        """Create an empty queue.

        Args:
            desk: stores the queued messages.
            turns: the answers that they wait for.
            send: starts turns with a message, the draft that stays, and the number of answers;
                False: it was not sent.
            drop_empty_version: removes a version of a reply that was stopped before its first word.
        """
        super().__init__()
        self._desk = desk
        self._turns = turns
        self._send = send
        self._drop_empty_version = drop_empty_version
        # Key: a conversation with a queued message. A key may stay after its message is gone; such
        # a key has no effect.
        self._awaited: dict[ConversationId, _Awaited] = {}
        # Return a message at once: the user may type before the answer has ended.
        turns.stop_requested.connect(self.withdraw)
        turns.activity_changed.connect(self._on_activity_changed)

    def add(
        self,
        conversation_id: ConversationId,
        text: str,
        reply_id: NodeId,
        versions: tuple[NodeId, ...],
        *,
        answers: int,
    ) -> None:
        """Append a text and the draft's files to the queued message, which waits for a reply.

        The message follows the one of `versions` that is on show then: the reply and the others
        that were requested with it. It gets as many answers as the newest of its texts was sent
        for.
        """
        is_stopping = self._turns.is_stopping(conversation_id)
        self._awaited[conversation_id] = _Awaited(reply_id, versions, is_stopping, answers)
        self._desk.queue(conversation_id, text)
        self.changed.emit(conversation_id)

    def withdraw(self, conversation_id: ConversationId) -> None:
        """Move the queued message back into the composer. Do nothing if there is none."""
        unsent = self._desk.take_queued(conversation_id)
        if any(unsent):
            self._give_back(conversation_id, unsent)
            self.changed.emit(conversation_id)

    def note_refusal(self, conversation_id: ConversationId) -> None:
        """Send the message that was queued after the stop of a turn, which was refused then.

        Any other queued message has returned to the composer with the turn.
        """
        if any(self._desk.queued(conversation_id)):
            self._send_next(conversation_id)
        else:
            self.changed.emit(conversation_id)

    def _on_activity_changed(self, conversation_id: ConversationId) -> None:
        """Send or return the queued message if its answer has ended."""
        has_queued = any(self._desk.queued(conversation_id))
        if not has_queued or self._turns.live_in(conversation_id) is not None:
            return
        conversation = self._desk.get(conversation_id)
        reply_id, versions, is_stopping, _answers = self._awaited[conversation_id]
        if reply_id not in conversation.nodes:
            return  # the turn was refused: see note_refusal()
        if is_stopping:
            self._drop_empty_version(conversation_id)
            self._send_next(conversation_id)
        elif _is_complete(conversation, versions):
            self._send_next(conversation_id)
        else:
            self.withdraw(conversation_id)

    def _send_next(self, conversation_id: ConversationId) -> None:
        if self._turns.ends.is_quitting:
            self.withdraw(conversation_id)
            return
        unsent = self._desk.take_queued(conversation_id)
        conversation = self._desk.get(conversation_id)
        # Keep the draft, which the user may have typed during the answer.
        draft = Unsent(conversation.draft, conversation.draft_attachments)
        answers = self._awaited[conversation_id].answers
        if not self._send(conversation_id, unsent, draft, answers):
            self._give_back(conversation_id, unsent)
        self.changed.emit(conversation_id)

    def _give_back(self, conversation_id: ConversationId, unsent: Unsent) -> None:
        """Put a message that was not sent into the composer, before the draft."""
        self._desk.save(with_unsent(self._desk.get(conversation_id), unsent))
        self.returned.emit(conversation_id, unsent.text)


def _is_complete(conversation: Conversation, versions: tuple[NodeId, ...]) -> bool:
    """Return True if one of some versions of a reply is complete and the last message on show."""
    last = shown_path(conversation)[-1]
    return last.node_id in versions and last.status is MessageStatus.COMPLETE
