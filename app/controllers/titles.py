"""Titles by the model: asks the engine for a title after each of the first answers. Main thread.

The engine writes the title while it is idle (engine/runner/title.py). The title belongs to the
version of the first message that was on show then. A title that the user typed meanwhile stays.
While an answer is running in the conversation, a title waits for its end: the desk may have to take
the turn back, and would take back the title too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from PySide6.QtCore import QObject

from app.controllers.chat_services import ChatServices
from app.controllers.preferences import Preferences
from app.controllers.requests import next_turn
from app.conversation.title import needs_title, usable_title, with_title
from app.conversation.tree import (
    Conversation,
    MessageNode,
    NodeId,
    first_title,
    shown_path,
)
from app.words import titles as words
from engine.commands import Asked
from engine.problem import Problem
from engine.types import ConversationId, Message, Role


@dataclass(frozen=True, slots=True)
class _Question:
    """A title that was asked for and has not come."""

    first: MessageNode  # first message of the branch on show then
    title: str  # title of the conversation then
    asked: Asked[str]


class TitlesController(QObject):
    """The conversations whose titles the engine is asked for."""

    def __init__(self, services: ChatServices, preferences: Preferences) -> None:
        super().__init__()
        self._bridge = services.bridge
        self._desk = services.desk
        self._turns = services.turns
        self._models = services.models
        self._library = services.library
        self._preferences = preferences
        self._asked: dict[ConversationId, _Question] = {}
        # The last answer of each conversation whose title was asked for, with that answer or
        # before.
        self._tried: dict[ConversationId, NodeId] = {}
        # Titles that wait for the end of an answer, each with the first message that it is for.
        self._waiting: dict[ConversationId, tuple[NodeId, str]] = {}
        self._is_over = False  # True once the app is closing
        services.desk.changed.connect(self._on_changed)
        services.turns.activity_changed.connect(self._on_activity_changed)
        services.library.discarded.connect(self._withdraw)
        preferences.changed.connect(self._on_preferences_changed)

    def stop(self) -> None:
        """Send no more commands, because the app is closing. Idempotent."""
        self._is_over = True

    def _ask(self, conversation: Conversation) -> None:
        """Ask for a title, unless the conversation needs none or has had no answer since."""
        facts = self._models.status.facts
        conversation_id = conversation.conversation_id
        is_listed = conversation_id in self._library.listed
        if facts is None or not is_listed or not needs_title(conversation):
            return
        path = shown_path(conversation)
        newest = path[-1].node_id
        if self._tried.get(conversation_id) == newest:
            return
        self._tried[conversation_id] = newest
        turn = next_turn(replace(conversation, draft="", draft_attachments=()), facts)
        question = Message(role=Role.USER, content=words.QUESTION)
        asked = self._bridge.engine.make_title(replace(turn, messages=(*turn.messages, question)))
        self._asked[conversation_id] = _Question(path[0], conversation.title, asked)
        self._bridge.when_answered(asked, partial(self._on_made, conversation_id))

    def _on_made(self, conversation_id: ConversationId, text: str) -> None:
        if conversation_id not in self._asked:
            return
        first = self._asked.pop(conversation_id).first
        if title := usable_title(text, first_title(first)):
            self._waiting[conversation_id] = first.node_id, title
            self._on_activity_changed(conversation_id)

    def _on_activity_changed(self, conversation_id: ConversationId) -> None:
        """Set the title that waits for the end of an answer, or ask for one after it."""
        if self._turns.live_in(conversation_id) is not None:
            return
        if conversation_id in self._waiting:
            self._desk.open(conversation_id, self._set_title, _ignore)
        elif self._preferences.value.name_chats and not self._is_over:
            self._desk.open(conversation_id, self._ask, _ignore)

    def _set_title(self, conversation: Conversation) -> None:
        waiting = self._waiting.pop(conversation.conversation_id, None)
        is_listed = conversation.conversation_id in self._library.listed
        if waiting is None or conversation.title_is_manual or not is_listed:
            return
        node_id, title = waiting
        if node_id in conversation.nodes:
            self._desk.save(with_title(conversation, node_id, title))

    def _on_changed(self, conversation_id: ConversationId) -> None:
        """Withdraw the question for a title if the conversation has got another one."""
        if conversation_id not in self._asked:
            return
        conversation = self._desk.get(conversation_id)
        is_kept = conversation.title == self._asked[conversation_id].title
        if conversation.title_is_manual or not is_kept:
            self._withdraw(conversation_id)

    def _on_preferences_changed(self) -> None:
        if not self._preferences.value.name_chats:
            for conversation_id in list(self._asked):
                self._withdraw(conversation_id)

    def _withdraw(self, conversation_id: ConversationId) -> None:
        if conversation_id in self._asked:
            question = self._asked.pop(conversation_id)
            if not self._is_over:
                self._bridge.engine.withdraw(question.asked)


def _ignore(_problem: Problem) -> None:
    """Leave the automatic title: the conversation cannot be loaded."""
