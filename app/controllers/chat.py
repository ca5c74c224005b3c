"""What the person does in a conversation: send, stop, regenerate, edit, look at another version. Main thread.

Plans the turn and hands it on; what becomes of it is the business of turns.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QObject, Signal

from app.controllers.desk import Desk, join_texts
from app.controllers.models import ModelsController
from app.controllers.origin import Origin
from app.controllers.requests import problem_with
from app.controllers.turns import Refusal, Turns
from app.controllers.undo import UndoList
from app.conversation.actions import (
    Turn,
    TurnIds,
    plan_continue,
    plan_edit,
    plan_regenerate,
    plan_send,
)
from app.conversation.deletion import can_delete, delete_message, num_below, restore_message
from app.conversation.preset import Preset, apply_preset
from app.conversation.tree import (
    Conversation,
    MessageStatus,
    NodeId,
    Setup,
    set_system_prompt,
    show_version,
    shown_path,
    versions,
)
from app.words import problems as words
from engine.errors import EngineError, UserFixableError
from engine.types import ConversationId

Plan = Callable[[Conversation], Turn]


class AnswerRunningError(UserFixableError):
    """What is asked for has to wait for an answer."""

    title = words.ANSWER_RUNNING
    advice = words.ANSWER_RUNNING_ADVICE


class ChatController(QObject):
    """Each action says whether it was taken. refused says why not, with the text to give back, if any."""

    refused = Signal(object)  # Refusal
    next_turn_changed = Signal(object)  # ConversationId: other messages or options come before it
    draft_saved = Signal(object)  # ConversationId
    queue_changed = Signal(object)  # ConversationId: what waits to be sent
    deleted = Signal(int, object)  # how many messages, what undoes it
    restored = Signal(object)  # ConversationId: a message is back in it
    failed = Signal(object)  # Problem

    def __init__(
        self, desk: Desk, turns: Turns, models: ModelsController, undo: UndoList, origin: Origin
    ) -> None:
        super().__init__()
        self._desk = desk
        self._turns = turns
        self._models = models
        self._undo = undo
        self._origin = origin
        self._awaited: dict[ConversationId, NodeId] = {}  # the replies that messages wait for
        turns.refused.connect(self.refused)
        turns.activity_changed.connect(self._on_activity_changed)

    def send(self, conversation_id: ConversationId, text: str) -> bool:
        """Add a message and have it answered; while an answer is on its way, once that has ended."""
        reply_id = self._turns.reply_in(conversation_id)
        if reply_id is not None:
            self._awaited[conversation_id] = reply_id
            self._desk.queue(conversation_id, text)
            self.queue_changed.emit(conversation_id)
            return True
        return self._send(conversation_id, text, draft="")

    def withdraw(self, conversation_id: ConversationId) -> None:
        """Give back what waits to be sent."""
        text = self._desk.take_queued(conversation_id)
        if text:
            self._give_back(conversation_id, text)
            self.queue_changed.emit(conversation_id)

    def queued(self, conversation_id: ConversationId) -> str:
        """What is sent once the answer that is on its way has ended."""
        return self._desk.queued(conversation_id)

    def _send(self, conversation_id: ConversationId, text: str, *, draft: str) -> bool:
        ids, now = self._new_ids(), self._origin.now()

        def plan(current: Conversation) -> Turn:
            turn = plan_send(current, text, ids, now=now)
            return replace(turn, conversation=replace(turn.conversation, draft=draft))

        return self._begin(conversation_id, text, plan)

    def _on_activity_changed(self, conversation_id: ConversationId) -> None:
        """The answer that a message waits for has ended: it follows if that is complete and on show.

        Otherwise it goes back: the answer was stopped or refused, or another version is being read.
        """
        text = self._desk.queued(conversation_id)
        if not text or self._turns.live_in(conversation_id) is not None:
            return
        conversation = self._desk.get(conversation_id)
        awaited = conversation.nodes.get(self._awaited.pop(conversation_id))
        is_last = awaited in shown_path(conversation)[-1:]
        if awaited is None or not is_last or awaited.status is not MessageStatus.COMPLETE:
            self.withdraw(conversation_id)
            return
        self._desk.take_queued(conversation_id)
        if not self._send(conversation_id, text, draft=conversation.draft):
            self._give_back(conversation_id, text)
        self.queue_changed.emit(conversation_id)

    def _give_back(self, conversation_id: ConversationId, text: str) -> None:
        """What was to be sent comes before what is being typed."""
        draft = self._desk.get(conversation_id).draft
        self._desk.save_draft(conversation_id, join_texts(text, draft))
        self.refused.emit(Refusal(conversation_id, text, None))

    def edit(self, conversation_id: ConversationId, node_id: NodeId, text: str) -> bool:
        """Add a version of a message and have it answered."""
        ids, now = self._new_ids(), self._origin.now()
        return self._begin(
            conversation_id,
            text,
            lambda current: plan_edit(current, node_id, text, ids, now=now),
        )

    def regenerate(self, conversation_id: ConversationId, reply_id: NodeId) -> bool:
        """Add a version of a reply; also the way to try again after a failure."""
        new_id, now = NodeId(self._origin.new_id()), self._origin.now()
        return self._begin(
            conversation_id,
            "",
            lambda current: plan_regenerate(current, reply_id, new_id, now=now),
        )

    def resume(self, conversation_id: ConversationId, reply_id: NodeId) -> bool:
        """Go on with a reply that was cut off."""
        now = self._origin.now()
        return self._begin(
            conversation_id, "", lambda current: plan_continue(current, reply_id, now=now)
        )

    def delete(self, conversation_id: ConversationId, node_id: NodeId) -> None:
        """Take out a version of a message and all below it; nothing while an answer is on its way."""
        conversation = self._desk.get(conversation_id)
        if self._turns.live_in(conversation_id) is None and can_delete(conversation, node_id):
            self._put(delete_message(conversation, node_id, now=self._origin.now()))
            self.deleted.emit(
                num_below(conversation, node_id), self._note_deletion(conversation_id, node_id)
            )

    def stop(self, conversation_id: ConversationId) -> None:
        self._turns.stop(conversation_id)

    def show_neighbour(self, conversation_id: ConversationId, node_id: NodeId, step: int) -> None:
        """Show the version that is step away from this one, if there is one."""
        conversation = self._desk.get(conversation_id)
        siblings = versions(conversation, node_id)
        index = siblings.index(node_id) + step
        if 0 <= index < len(siblings):
            self._put(show_version(conversation, siblings[index]))

    def set_system_prompt(self, conversation_id: ConversationId, text: str) -> None:
        self._put(set_system_prompt(self._desk.get(conversation_id), text))

    def apply_preset(self, conversation_id: ConversationId, preset: Preset) -> None:
        """Take over its system prompt and its setup."""
        self._put(apply_preset(self._desk.get(conversation_id), preset))

    def set_setup(self, conversation_id: ConversationId, setup: Setup) -> None:
        self._put(replace(self._desk.get(conversation_id), setup=setup))

    def save_draft(self, conversation_id: ConversationId, draft: str) -> None:
        self._desk.save_draft(conversation_id, draft)
        self.draft_saved.emit(conversation_id)

    def _note_deletion(
        self, conversation_id: ConversationId, node_id: NodeId
    ) -> Callable[[], object]:
        return self._undo.add(lambda: self._bring_back(conversation_id, node_id))

    def _bring_back(self, conversation_id: ConversationId, node_id: NodeId) -> None:
        if self._turns.live_in(conversation_id) is not None:
            self._note_deletion(conversation_id, node_id)
            self.failed.emit(AnswerRunningError(words.DELETED_COMES_BACK).problem)
            return
        self._desk.open(
            conversation_id,
            lambda conversation: self._on_reopened(conversation, node_id),
            self.failed.emit,
        )

    def _on_reopened(self, conversation: Conversation, node_id: NodeId) -> None:
        self._put(restore_message(conversation, node_id))
        self.restored.emit(conversation.conversation_id)

    def _put(self, conversation: Conversation) -> None:
        self._desk.save(conversation)
        self.next_turn_changed.emit(conversation.conversation_id)

    def _begin(self, conversation_id: ConversationId, text: str, plan: Plan) -> bool:
        if self._turns.live_in(conversation_id) is not None:
            return False
        status = self._models.status
        try:
            turn = plan(self._desk.get(conversation_id))
        except EngineError as error:
            self.refused.emit(Refusal(conversation_id, "", error.problem))
            return False
        if status.facts is None and not status.will_be_ready:
            self.refused.emit(Refusal(conversation_id, "", problem_with(status)))
            return False
        self._turns.start_turn(turn, text)
        return True

    def _new_ids(self) -> TurnIds:
        return TurnIds(user=NodeId(self._origin.new_id()), reply=NodeId(self._origin.new_id()))
