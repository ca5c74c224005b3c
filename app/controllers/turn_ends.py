"""The ends of turns: a reply stays with its text, or the text of its message returns. Main thread.

turns.py has one TurnEnds. However a started turn ends, its reply stays in the conversation with the
text so far. A refused turn is removed from the conversation. Its text returns to the composer, and
so does the message that is queued behind it. The text of an edited message returns to the editor of
that message. When the app quits, it returns to the composer too, because the text of an editor is
not stored.

If one of several turns of a conversation ends before it has started, and others are running or have
started, only its reply leaves the conversation. The text returns to the composer if none has
started.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from app.controllers.desk import Desk
from app.controllers.refusal import Refusal, RefusedEdit
from app.controllers.running_turn import RunningTurn, turns_of
from app.conversation.deletion import can_delete, delete_message
from app.conversation.tree import Conversation
from app.conversation.unsent import join_texts
from engine.problem import Problem
from engine.types import ConversationId


class TurnEnds(QObject):
    """Ends turns. A turn is removed first, so that its conversation can have a next turn."""

    removed = Signal()  # a turn is no longer among the running ones
    # argument: ConversationId of a conversation whose turn has ended
    activity_changed = Signal(object)
    # argument: ConversationId of a conversation whose started turns have ended, at least one with a
    # complete or failed reply. Not emitted if all requests were cancelled, by the user or by a
    # change of the model.
    answered = Signal(object)
    # argument: a Refusal. The text is already in the stored draft; ChatPane also puts it back into
    # the composer if the conversation is on show. The text of an edit is not stored.
    refused = Signal(object)

    def __init__(self, running: list[RunningTurn], desk: Desk, now: Callable[[], float]) -> None:
        """Create an object for a list of running turns.

        now: returns the time of day in Unix seconds.
        """
        super().__init__()
        self._running = running
        self._desk = desk
        self._now = now
        # Conversations with running turns, of which one has ended with a complete or failed reply.
        self._answered: set[ConversationId] = set()
        self.is_quitting = False  # True after note_quit()

    def note_quit(self) -> None:
        """Note that the app is quit, which cuts the replies off. Store them with this note at once.

        The process may be killed before the engine has ended, for example by a shutdown.
        """
        self.is_quitting = True
        cut_off: dict[ConversationId, Conversation] = {}
        for running in self._running:
            if running.has_started:
                conversation_id = running.conversation_id
                before = cut_off.get(conversation_id) or self._desk.get(conversation_id)
                cut_off[conversation_id] = running.quit_in(running.stopped_in(before))
        for conversation in cut_off.values():
            self._desk.save_aside(conversation)

    def close(self) -> None:
        """End every turn and keep the text that has arrived.

        Core.close() calls this after the events of the closed engine have ended most turns. Turns
        remain that never started, or whose engine thread did not end in time.
        """
        for running in list(self._running):
            if running.has_started:
                self.end_stopped(running)
            else:
                self.refuse(running, None)

    def end(
        self, running: RunningTurn, conversation: Conversation, *, is_answer: bool = False
    ) -> None:
        """End a started turn, and save the conversation with its ended reply.

        is_answer: True if the reply is complete or has failed, False if it was cut off.
        """
        conversation_id = running.conversation_id
        if is_answer:
            self._answered.add(conversation_id)
        self._remove(running)
        self._desk.save(running.quit_in(conversation) if self.is_quitting else conversation)
        is_last = not turns_of(self._running, conversation_id)
        if is_last:
            self._desk.unpin(conversation_id)
        self.activity_changed.emit(conversation_id)
        if is_last and conversation_id in self._answered:
            self._answered.discard(conversation_id)
            self.answered.emit(conversation_id)

    def end_stopped(self, running: RunningTurn) -> None:
        """End a started turn with the text so far."""
        self.end(running, running.stopped_in(self._desk.get(running.conversation_id)))

    def refuse(self, running: RunningTurn, problem: Problem | None) -> None:
        """End a turn that has not started: remove it from the conversation, return its text.

        The queued message returns too, after that text, unless it was sent after a stop of the
        turn.
        """
        conversation_id = running.conversation_id
        is_held = self._desk.is_held(conversation_id)
        if not is_held or len(turns_of(self._running, conversation_id)) > 1:
            self._remove_answer(running, problem)
            return
        self._remove(running)
        edited = None if self.is_quitting else running.turn.edited
        user = running.turn.conversation.nodes[running.turn.user_id]
        edit = None if edited is None else RefusedEdit(edited, running.text, user.attachments)
        has_queued = self.is_quitting or not running.stopped
        queued = self._desk.take_back(
            conversation_id, has_editor=edit is not None, has_queued=has_queued
        )
        self.activity_changed.emit(conversation_id)
        text = queued.text if edit else join_texts(running.text, queued.text)
        self.refused.emit(Refusal(conversation_id, text, problem, edit))
        # The listeners look for the removed messages, so the conversation is unpinned only now.
        if not turns_of(self._running, conversation_id):
            self._desk.unpin(conversation_id)

    def _remove_answer(self, running: RunningTurn, problem: Problem | None) -> None:
        """End one of several turns that has not started. Its reply stays only with a problem."""
        conversation = self._desk.get(running.conversation_id)
        if problem is not None:
            self.end(running, running.failed_in(conversation, problem))
            return
        conversation = running.stopped_in(conversation)
        if can_delete(conversation, running.reply_id):
            conversation = delete_message(conversation, running.reply_id, now=self._now())
        self.end(running, conversation)

    def _remove(self, running: RunningTurn) -> None:
        self._running.remove(running)
        self.removed.emit()
