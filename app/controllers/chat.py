"""The user's actions in a conversation: send, stop, regenerate, edit, delete. Main thread.

The window's widgets call `ChatController` for every such action. An action that needs an answer is
planned by a pure function of conversation/actions.py, which returns the changed conversation and
the messages for the engine. The plan goes to turns.py, which runs it until the answer has ended.
The other actions change the conversation at once and save it through desk.py.

A conversation answers one message at a time, with one answer or several. While an answer is
running:

    send                             queues the message until that answer has ended
    edit, resume, ask_again,         return False and change nothing
    rewrite
    regenerate                       returns False; while the answer stops, it waits for its end
    delete, prune                    changes nothing
    undo of a deleted message        reports AnswerRunningError and can be tried again
    versions, prompt, setup, draft   change at once, but not for the running answer
    pick                             shows one of several answers and stops the others

Conversations are stored in desk.py, running answers in turns.py. queued_messages.py has the
messages that wait for the end of an answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QObject, Signal

from app.controllers.chat_steps import ChatSteps
from app.controllers.desk import Desk
from app.controllers.models import ModelsController
from app.controllers.origin import Origin
from app.controllers.queued_messages import QueuedMessages
from app.controllers.queued_versions import QueuedVersions
from app.controllers.refusal import Refusal
from app.controllers.turn_starter import TurnStarter
from app.controllers.turns import Turns
from app.controllers.undo import UndoList
from app.conversation.actions import (
    Turn,
    TurnIds,
    plan_continue,
    plan_edit,
    plan_regenerate,
    plan_send,
)
from app.conversation.answers import plan_ask_again
from app.conversation.attachments import Files
from app.conversation.branching import can_rewrite, rewrite_reply
from app.conversation.deletion import can_delete, delete_message, num_shown_from
from app.conversation.forks import branch_top, is_in_tree, num_from
from app.conversation.preset import Preset, apply_preset
from app.conversation.title import retitled
from app.conversation.tree import (
    Conversation,
    NodeId,
    Setup,
    neighbour_version,
    path_to,
    set_system_prompt,
    set_without_documents,
    show_branch,
    shown_path,
    versions,
)
from app.conversation.unsent import Unsent
from app.words import undo as undo_words
from engine.types import ConversationId


class ChatController(QObject):
    """The user's actions in conversations. Ids identify conversations and messages.

    Every conversation that is passed to a method must be in memory (desk.py).

    Methods that return bool return True if a turn was started or queued; rewrite, if it added the
    version. After False nothing has changed, and the caller keeps the user's text: an answer is
    running, the user must choose a model first, or `refused` was emitted with the reason. The
    engine can refuse a turn later, after True was returned. Then `refused` is emitted with the
    text.
    """

    # Argument: a Refusal. ChatPane shows its problem and puts its text back into the composer, or
    # an edit into its editor. The text is empty if the call returned False, or if the action has no
    # text (regenerate, resume).
    refused = Signal(object)
    # argument: ConversationId of a conversation whose messages or options have changed
    next_turn_changed = Signal(object)
    draft_saved = Signal(object)  # argument: the ConversationId
    # argument: ConversationId of a conversation whose queued message has changed or is gone
    queue_changed = Signal(object)
    # arguments: ConversationId, NodeId of a message of the composer that became part of it
    sent = Signal(object, object)
    # arguments: ConversationId, the MessageNode of an answer before it is continued
    continued = Signal(object, object)
    # arguments: ConversationId, NodeId of the answer that the user has picked of several
    picked = Signal(object, object)
    # arguments: ConversationId, NodeId of the answer that is asked again with other options
    asked_again = Signal(object, object)
    # arguments: number of deleted messages, function that undoes the deletion
    deleted = Signal(int, object)
    # argument: ConversationId of a conversation in which a deleted message was restored
    restored = Signal(object)
    failed = Signal(object)  # argument: a Problem

    def __init__(
        self, desk: Desk, turns: Turns, models: ModelsController, undo: UndoList, origin: Origin
    ) -> None:
        super().__init__()
        self._desk = desk
        self._turns = turns
        self._origin = origin
        # Returns False if the user must choose a model before an answer. The window sets it.
        self.may_begin: Callable[[ConversationId], bool] = lambda _chat: True
        # Returns the turn of an edit, which may begin with a preview. Previews sets it.
        self.begin_edit: Callable[[Turn], Turn] = lambda turn: turn

        def may_begin(chat: ConversationId) -> bool:
            return self.may_begin(chat)  # the function at the time of the call

        self._starter = TurnStarter(desk, turns, models, origin, may_begin, self.refused.emit)
        self._steps = ChatSteps(desk, turns, undo, origin, self.apply)
        self._steps.restored.connect(self.restored)
        self._steps.failed.connect(self.failed)
        drop_empty_version = self._steps.drop_empty_version
        # Create this before drop_empty_version is connected, because Qt calls slots in the order of
        # connection: a queued message must follow the new version.
        self._queue = QueuedMessages(desk, turns, self._send, drop_empty_version)
        self._queue.changed.connect(self.queue_changed)
        self._queue.returned.connect(self._on_returned)
        turns.refused.connect(self._on_turn_refused)
        turns.activity_changed.connect(drop_empty_version)
        self._queued_versions = QueuedVersions(desk, turns, self._regenerate)

    def send(self, conversation_id: ConversationId, text: str, *, answers: int = 1) -> bool:
        """Add a message and request its answer; queue the message if another answer is running.

        A second message during the same answer is appended to the queued one.

        answers: number of answers that are written at once, each with its own seed. They are
            versions of one reply, and the first is on show.
        """
        reply_id = self._turns.reply_in(conversation_id)
        if reply_id is not None:
            together = self._steps.requested_with(conversation_id, reply_id)
            self._queue.add(conversation_id, text, reply_id, together, answers=answers)
            return True
        files = self._desk.get(conversation_id).draft_attachments
        return self._send(conversation_id, Unsent(text, files), Unsent(), answers)

    def withdraw(self, conversation_id: ConversationId) -> None:
        """Move the queued message back into the composer. Do nothing if there is none."""
        self._queue.withdraw(conversation_id)

    def queued(self, conversation_id: ConversationId) -> Unsent:
        """Return the message that waits for the end of the running answer; empty if none does."""
        return self._desk.queued(conversation_id)

    def _send(
        self, conversation_id: ConversationId, message: Unsent, draft: Unsent, answers: int
    ) -> bool:
        """Start turns with a new message. `draft` becomes the conversation's draft."""
        ids, now = TurnIds.new(self._origin.new_id), self._origin.now()

        def plan(current: Conversation) -> Turn:
            # plan_send takes the files from the draft.
            current = replace(current, draft_attachments=message.files)
            turn = plan_send(current, message.text, ids, now=now)
            left = replace(turn.conversation, draft=draft.text, draft_attachments=draft.files)
            return replace(turn, conversation=replace(left, draft_was_sent=False))

        has_begun = self._starter.start(conversation_id, message.text, plan, message.files, answers)
        replies = self._turns.replies_in(conversation_id)  # empty if the turns were refused at once
        if answers > 1 and replies and has_begun:
            self._steps.note_answers(conversation_id, replies)
        if has_begun and ids.user in self._desk.get(conversation_id).nodes:  # else refused
            self.sent.emit(conversation_id, ids.user)
        return has_begun

    def _on_turn_refused(self, refusal: Refusal) -> None:
        """Report the refusal, with the queued message unless this was sent after a stop."""
        self._steps.forget_version(refusal.conversation_id)
        self.refused.emit(refusal)
        self._queue.note_refusal(refusal.conversation_id)

    def _on_returned(self, conversation_id: ConversationId, text: str) -> None:
        self.refused.emit(Refusal(conversation_id, text, None))

    def edit(
        self,
        conversation_id: ConversationId,
        node_id: NodeId,
        text: str,
        attachments: Files | None = None,
    ) -> bool:
        """Add a new version of a user message, with this text, and request its answer.

        attachments: those of the new version. None: those of the message.
        """
        ids, now = TurnIds.new(self._origin.new_id), self._origin.now()
        has_begun = self._starter.start(
            conversation_id,
            text,
            lambda current: self.begin_edit(
                plan_edit(current, node_id, text, ids, now=now, attachments=attachments)
            ),
        )
        if has_begun:
            name = undo_words.EDIT_MESSAGE
            self._steps.note_turn(name, conversation_id, before=node_id, after=(ids.user,))
        return has_begun

    def regenerate(
        self, conversation_id: ConversationId, reply_id: NodeId, *, answers: int = 1
    ) -> bool:
        """Request another version of a reply that has ended, for example of a failed one.

        For a reply that was stopped and has not ended, do it as soon as the reply has ended.

        answers: number of versions that are written at once, each with its own seed. The first is
            on show.
        """
        if self._turns.is_stopping(conversation_id):
            self._queued_versions.add(conversation_id, reply_id, answers)
            return True
        return self._regenerate(conversation_id, reply_id, answers)

    def _regenerate(self, conversation_id: ConversationId, reply_id: NodeId, answers: int) -> bool:
        new_id, now = NodeId(self._origin.new_id()), self._origin.now()
        has_begun = self._starter.start(
            conversation_id,
            "",
            lambda current: plan_regenerate(current, reply_id, new_id, now=now),
            answers=answers,
        )
        if has_begun:
            replies = self._turns.replies_in(conversation_id) or (new_id,)
            name = undo_words.REGENERATE
            self._steps.note_turn(name, conversation_id, before=reply_id, after=replies)
        return has_begun

    def ask_again(
        self,
        conversation_id: ConversationId,
        reply_id: NodeId,
        setup: Setup,
        *,
        system_prompt: str | None = None,
    ) -> bool:
        """Request another version of a reply with other options. The conversation keeps its own.

        system_prompt: the system prompt for this version; None for that of the conversation.
        """
        new_id, now = NodeId(self._origin.new_id()), self._origin.now()
        has_begun = self._starter.start(
            conversation_id,
            "",
            lambda current: plan_ask_again(
                current, reply_id, new_id, setup, system_prompt, now=now
            ),
        )
        if has_begun:
            name = undo_words.ASK_AGAIN
            self._steps.note_turn(name, conversation_id, before=reply_id, after=(new_id,))
            self.asked_again.emit(conversation_id, reply_id)
        return has_begun

    def pick(self, conversation_id: ConversationId, reply_id: NodeId) -> None:
        """Show one of several answers to a message, and stop the others. They stay as versions."""
        for other in self._turns.replies_in(conversation_id):
            if other != reply_id:
                self._turns.stop_reply(other)
        self.show_branch(conversation_id, reply_id)
        self.picked.emit(conversation_id, reply_id)

    def stop_reply(self, reply_id: NodeId) -> None:
        """Stop one of several running answers; keep its text so far."""
        self._turns.stop_reply(reply_id)

    def resume(self, conversation_id: ConversationId, reply_id: NodeId) -> bool:
        """Request the rest of a reply that was cut off.

        can_continue() of conversation/actions.py must be True; otherwise the window does not offer
        this action.
        """
        before, now = self._desk.get(conversation_id).nodes[reply_id], self._origin.now()
        has_begun = self._starter.start(
            conversation_id, "", lambda current: plan_continue(current, reply_id, now=now)
        )
        if has_begun and self._desk.get(conversation_id).nodes[reply_id] is not before:
            self.continued.emit(conversation_id, before)
        return has_begun

    def rewrite(self, conversation_id: ConversationId, reply_id: NodeId, text: str) -> bool:
        """Add a version of an answer with the user's own text. No answer is requested.

        Return False if the conversation has a running answer, or if the text is blank.
        """
        conversation = self._desk.get(conversation_id)
        is_running = self._turns.live_in(conversation_id) is not None
        if is_running or not text.strip() or not can_rewrite(conversation, reply_id):
            return False
        new_id, now = NodeId(self._origin.new_id()), self._origin.now()
        self.apply(rewrite_reply(conversation, reply_id, text, new_id, now=now))
        name = undo_words.EDIT_ANSWER
        self._steps.note_version(name, conversation_id, before=reply_id, after=new_id)
        return True

    def delete(self, conversation_id: ConversationId, node_id: NodeId) -> None:
        """Delete a version of a message and all messages below it, unless an answer is running.

        Emit `deleted` with the number of messages and a function that undoes the deletion. The same
        function is added to the undo list. It works only once.
        """
        conversation = self._desk.get(conversation_id)
        if can_delete(conversation, node_id):
            count = num_shown_from(conversation, node_id)
            self._delete(conversation, node_id, count, undo_words.DELETE_MESSAGE)

    def prune(self, conversation_id: ConversationId, node_id: NodeId) -> None:
        """Delete the messages that only branches through this message contain. See delete()."""
        conversation = self._desk.get(conversation_id)
        top = branch_top(conversation, node_id)
        if top is not None:
            count = num_from(conversation, top)
            self._delete(conversation, top, count, undo_words.DELETE_BRANCH)

    def _delete(self, before: Conversation, node_id: NodeId, count: int, name: str) -> None:
        if self._turns.live_in(before.conversation_id) is None:
            self.apply(delete_message(before, node_id, now=self._origin.now()))
            undo = self._steps.note_deletion(before, node_id, name)
            self.deleted.emit(count, undo)

    def stop(self, conversation_id: ConversationId) -> None:
        """Stop the running answer, if any; keep its text so far. See Turns.stop.

        A queued message returns to the composer at once: QueuedMessages gets stop_requested.
        """
        self._turns.stop(conversation_id)

    def show_neighbour(self, conversation_id: ConversationId, node_id: NodeId, step: int) -> None:
        """Show the version `step` places after the version `node_id`. A negative `step` goes back.

        Do nothing if there is no such version.
        """
        neighbour = neighbour_version(self._desk.get(conversation_id), node_id, step)
        if neighbour is not None:
            self.show_branch(conversation_id, neighbour)

    def show_branch(self, conversation_id: ConversationId, node_id: NodeId) -> None:
        """Show the branch of a message.

        Do nothing if the message is on show, or if it or a message above it was deleted.
        """
        conversation = self._desk.get(conversation_id)
        shown = shown_path(conversation)
        if not is_in_tree(conversation, node_id) or conversation.nodes[node_id] in shown:
            return
        self.apply(show_branch(conversation, node_id))
        left = next(one for one in path_to(conversation, node_id) if one not in shown)
        siblings = versions(conversation, left.node_id)
        before = next(one.node_id for one in shown if one.node_id in siblings)
        name = undo_words.show_version(siblings.index(left.node_id) + 1)
        self._steps.note_version(name, conversation_id, before=before, after=node_id)

    def set_system_prompt(self, conversation_id: ConversationId, text: str) -> None:
        self.apply(set_system_prompt(self._desk.get(conversation_id), text))

    def apply_preset(self, conversation_id: ConversationId, preset: Preset) -> None:
        """Copy the preset's system prompt and setup into a conversation."""
        self.apply(apply_preset(self._desk.get(conversation_id), preset))

    def set_without_documents(self, conversation_id: ConversationId, without: bool) -> None:  # noqa: FBT001 (the value)
        """Begin a conversation without the documents of its folder, or with them again."""
        self.apply(set_without_documents(self._desk.get(conversation_id), without))

    def set_setup(self, conversation_id: ConversationId, setup: Setup) -> None:
        """Replace the generation options, such as the temperature, of later answers."""
        self.apply(replace(self._desk.get(conversation_id), setup=setup))

    def save_draft(self, conversation_id: ConversationId, draft: str) -> None:
        """Save the text of the composer.

        ChatPane calls this after a pause in typing, before it shows another conversation, and when
        the app closes.
        """
        self._desk.save_draft(conversation_id, draft)
        self.draft_saved.emit(conversation_id)

    def apply(self, conversation: Conversation) -> None:
        """Save a change that needs no answer, and let read_ahead.py read the new prompt ahead."""
        self._desk.save(retitled(conversation))
        self.next_turn_changed.emit(conversation.conversation_id)
