"""The undo of sending: a message and its answer leave the chat, and its text returns. Main thread.

Text that was typed and not sent is undone here too, after the user has left its chat and come back.

    state of the message at the undo      undo                             redo
    queued behind a running answer        the queue gives it back          queued or sent again
    sent, the engine has not started it   its turn is stopped and refused  sent again
    its answer is running or has ended    stopped, and marked as deleted   restored with its answer

Versions of the message, which edits have added, are deleted and restored together with it.

The text and the files return to the composer, in front of newer ones. A redo removes them there,
unless the user has changed them. An undone message does not come back while another answer is
running: that answer may be the one above it, which is being continued.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from PySide6.QtCore import QObject, Signal

from app.controllers.chat import ChatController
from app.controllers.chat_steps import AnswerRunningError
from app.controllers.desk import Desk
from app.controllers.origin import Origin
from app.controllers.refusal import Refusal
from app.controllers.turns import Turns
from app.controllers.undo import UndoList
from app.conversation.attachments import own_files
from app.conversation.deletion import delete_message, restore_message
from app.conversation.tree import Conversation, NodeId, path_to, set_draft, show_branch, versions
from app.conversation.unsent import NOTHING_UNSENT, Unsent, join_texts, with_unsent
from app.words import problems, undo as words
from engine.types import ConversationId


@dataclass(slots=True, eq=False)
class _Sent:
    """A message that the user has sent."""

    conversation_id: ConversationId
    node_id: NodeId | None  # None while the message is queued
    unsent: Unsent = NOTHING_UNSENT  # text and files that the last undo gave back
    undo: Callable[[], object] | None = None  # its function in the undo list
    removed: tuple[NodeId, ...] = ()  # versions of the message that the last undo has removed


class UndoSend(QObject):
    """Adds each message that the user sends to the undo list.

    The conversation must be in memory when a function of an entry runs; Undoing loads it.
    """

    draft_replaced = Signal(object)  # argument: ConversationId

    def __init__(
        self, desk: Desk, turns: Turns, chat: ChatController, undo: UndoList, origin: Origin
    ) -> None:
        super().__init__()
        self._desk = desk
        self._turns = turns
        self._chat = chat
        self._undo = undo
        self._origin = origin
        self._newest: dict[ConversationId, _Sent] = {}  # without queued messages
        self._queued: dict[ConversationId, _Sent] = {}
        # Messages that were taken back, while the engine may still start their turn.
        self._leaving: dict[ConversationId, _Sent] = {}
        self._again: _Sent | None = None  # message that a redo sends at present
        chat.sent.connect(self._on_sent)
        chat.queue_changed.connect(self._on_queue_changed)
        chat.refused.connect(self._on_refused)
        turns.activity_changed.connect(self._on_activity_changed)

    def _on_sent(self, conversation_id: ConversationId, node_id: NodeId) -> None:
        """Add a message, unless it was queued before or a redo sends it again."""
        sent = self._queued.pop(conversation_id, None) or self._again
        if sent is None:
            sent = self._add(conversation_id, node_id)
        sent.node_id = node_id
        self._newest[conversation_id] = sent

    def _on_queue_changed(self, conversation_id: ConversationId) -> None:
        """Add a queued message. The queue has one entry, because one undo gives all of it back."""
        earlier = self._queued.pop(conversation_id, None)
        if earlier is not None:
            self._drop(earlier)
        if any(self._chat.queued(conversation_id)):
            self._queued[conversation_id] = self._again or self._add(conversation_id, None)

    def _on_refused(self, refusal: Refusal) -> None:
        """Remove a message whose turn was refused: its text is in the composer again."""
        conversation_id = refusal.conversation_id
        sent = self._newest.get(conversation_id)
        if sent is not None and sent.node_id not in self._desk.get(conversation_id).nodes:
            del self._newest[conversation_id]
            self._drop(sent)

    def note_typing(self, conversation_id: ConversationId, before: str, after: str) -> None:
        """Add the text that the user typed before leaving a conversation, as one step.

        Until then the text field has the steps. It drops them when it shows another draft.
        """
        self._undo.add(
            words.TYPING,
            partial(self._set_draft, conversation_id, after, before),
            conversation_id,
            redo=partial(self._set_draft, conversation_id, before, after),
            stays=True,
        )

    def _set_draft(self, conversation_id: ConversationId, expected: str, draft: str) -> None:
        """Replace the text of the draft, unless it has changed in another way."""
        conversation = self._desk.get(conversation_id)
        if conversation.draft == expected:
            self._replace(set_draft(conversation, draft))

    def forget(self, conversation_id: ConversationId) -> None:
        """Drop what is known about a conversation that was removed for good."""
        for known in (self._newest, self._queued, self._leaving):
            known.pop(conversation_id, None)

    def _add(self, conversation_id: ConversationId, node_id: NodeId | None) -> _Sent:
        sent = _Sent(conversation_id, node_id)
        sent.undo = self._undo.add(
            words.SEND,
            partial(self._take_back, sent),
            conversation_id,
            redo=partial(self._send_again, sent),
            # It would take a message out of a chat that the user does not see.
            stays=True,
        )
        return sent

    def _drop(self, sent: _Sent) -> None:
        if sent.undo is not None:
            self._undo.drop(sent.undo)

    def _take_back(self, sent: _Sent) -> None:
        conversation_id = sent.conversation_id
        if sent.node_id is None:
            sent.unsent = self._chat.queued(conversation_id)
            self._chat.withdraw(conversation_id)
            return
        node = self._desk.get(conversation_id).nodes[sent.node_id]
        sent.unsent = Unsent(node.content, own_files(node.attachments))
        self._leaving[conversation_id] = sent
        self._turns.stop(conversation_id)
        self._on_activity_changed(conversation_id)

    def _on_activity_changed(self, conversation_id: ConversationId) -> None:
        """Remove a message that was taken back, as soon as its turn has started or ended.

        A turn that was refused has removed it, and has given its text back.
        """
        sent = self._leaving.get(conversation_id)
        is_running = self._turns.live_in(conversation_id) is not None
        if sent is None or (is_running and conversation_id not in self._turns.writing):
            return
        del self._leaving[conversation_id]
        nodes = self._desk.get(conversation_id).nodes
        node = None if sent.node_id is None else nodes.get(sent.node_id)
        if node is not None and node.deleted_at is None:
            self._undo.starting.emit()
            left = self._desk.get(conversation_id)
            # The other versions are edits of the message. They have been undone before this.
            sent.removed = versions(left, node.node_id)
            for version in sent.removed:
                left = delete_message(left, version, now=self._origin.now())
            self._replace(with_unsent(left, sent.unsent))

    def _send_again(self, sent: _Sent) -> bool:
        if sent.conversation_id in self._leaving:
            return False
        conversation = self._desk.get(sent.conversation_id)
        rest = _without(conversation, sent.unsent)
        node_id = sent.node_id
        if node_id is not None and node_id in conversation.nodes:
            if self._is_other_running(conversation, node_id):
                self._chat.failed.emit(AnswerRunningError(problems.MESSAGES_COME_BACK).problem)
                return False
            restored = conversation
            for version in (*sent.removed, node_id):
                restored = restore_message(restored, version)
            restored = show_branch(restored, node_id)
            self._replace(replace(restored, draft=rest.text, draft_attachments=rest.files))
            return True
        self._again = sent
        try:
            has_begun = self._send(conversation, sent.unsent, rest)
        finally:
            self._again = None
        self.draft_replaced.emit(sent.conversation_id)
        return has_begun

    def _send(self, before: Conversation, message: Unsent, draft: Unsent) -> bool:
        """Send a message with its files. `draft` is the rest of the composer, which stays there."""
        conversation_id = before.conversation_id
        self._desk.save(replace(before, draft_attachments=message.files))
        if not self._chat.send(conversation_id, message.text):
            self._desk.save(before)
            return False
        sent = self._desk.get(conversation_id)
        self._chat.apply(replace(sent, draft=draft.text, draft_attachments=draft.files))
        return True

    def _is_other_running(self, conversation: Conversation, node_id: NodeId) -> bool:
        """Return True if an answer is running that does not belong to a message."""
        reply_id = self._turns.reply_in(conversation.conversation_id)
        if reply_id is None:
            return False
        return all(node.node_id != node_id for node in path_to(conversation, reply_id))

    def _replace(self, conversation: Conversation) -> None:
        self._chat.apply(conversation)
        self.draft_replaced.emit(conversation.conversation_id)


def _without(conversation: Conversation, unsent: Unsent) -> Unsent:
    """Return the draft without the message that with_unsent() put before it, if it is there."""
    text, files = conversation.draft, conversation.draft_attachments
    if text == unsent.text or text.startswith(join_texts(unsent.text, "x")[:-1]):
        text = text[len(unsent.text) :].lstrip("\n")
    if files[: len(unsent.files)] == unsent.files:
        files = files[len(unsent.files) :]
    return Unsent(text, files)
