"""Titles by the model: asks the engine for a title after each of the first answers. Main thread.

The engine writes the title while it is idle (engine/runner/title.py).
It is set only if the conversation still has the automatic title that it had when the title was
asked for. A user who renames the conversation meanwhile, or edits its first message, therefore
always wins. While an answer is running in the conversation, a title waits for its end: the desk may
have to take the turn back, and would take back the title too.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from PySide6.QtCore import QObject

from app.bridge.engine_bridge import EngineBridge
from app.controllers.desk import Desk
from app.controllers.library import LibraryController
from app.controllers.models import ModelsController
from app.controllers.preferences import Preferences
from app.controllers.requests import next_turn
from app.controllers.turns import Turns
from app.conversation.title import needs_title, usable_title
from app.conversation.tree import Conversation, ConversationSummary, NodeId, shown_path
from app.words import titles as words
from engine.commands import Asked
from engine.problem import Problem
from engine.types import ConversationId, Message, Role


class TitlesController(QObject):
    """The conversations whose titles the engine is asked for."""

    def __init__(
        self,
        bridge: EngineBridge,
        desk: Desk,
        turns: Turns,
        models: ModelsController,
        library: LibraryController,
        preferences: Preferences,
    ) -> None:
        super().__init__()
        self._bridge = bridge
        self._desk = desk
        self._turns = turns
        self._models = models
        self._library = library
        self._preferences = preferences
        # The automatic title of each conversation whose title was asked for and has not come, and the
        # question.
        self._asked: dict[ConversationId, tuple[str, Asked[str]]] = {}
        # The last answer of each conversation whose title was asked for, with that answer or before.
        self._tried: dict[ConversationId, NodeId] = {}
        # Titles that wait for the end of an answer, with the automatic titles that they replace.
        self._waiting: dict[ConversationId, tuple[str, str]] = {}
        self._is_over = False  # True once the app is closing
        desk.changed.connect(self._on_changed)
        turns.activity_changed.connect(self._on_activity_changed)
        library.deleted.connect(self._on_deleted)
        preferences.changed.connect(self._on_preferences_changed)

    def stop(self) -> None:
        """Send no more commands, because the app is closing. Idempotent."""
        self._is_over = True

    def _ask(self, conversation: Conversation) -> None:
        """Ask for a title, unless the conversation needs none or has had no answer since."""
        facts = self._models.status.facts
        conversation_id = conversation.conversation_id
        is_listed = self._library.is_listed(conversation_id)
        if facts is None or not is_listed or not needs_title(conversation):
            return
        newest = shown_path(conversation)[-1].node_id
        if self._tried.get(conversation_id) == newest:
            return
        self._tried[conversation_id] = newest
        turn = next_turn(replace(conversation, draft="", draft_attachments=()), facts)
        question = Message(role=Role.USER, content=words.QUESTION)
        asked = self._bridge.engine.make_title(replace(turn, messages=(*turn.messages, question)))
        self._asked[conversation_id] = conversation.title, asked
        self._bridge.when_answered(asked, partial(self._on_made, conversation_id))

    def _on_made(self, conversation_id: ConversationId, text: str) -> None:
        if conversation_id not in self._asked:
            return
        automatic, _ = self._asked.pop(conversation_id)
        if title := usable_title(text, automatic):
            self._waiting[conversation_id] = automatic, title
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
        automatic, title = self._waiting.pop(conversation.conversation_id, ("", ""))
        is_automatic = not conversation.title_is_manual and conversation.title == automatic
        if is_automatic and self._library.is_listed(conversation.conversation_id):
            self._desk.save(replace(conversation, title=title))

    def _on_changed(self, conversation_id: ConversationId) -> None:
        """Withdraw the question for a title if the conversation has got another one."""
        if conversation_id not in self._asked:
            return
        automatic, _ = self._asked[conversation_id]
        conversation = self._desk.get(conversation_id)
        if conversation.title_is_manual or conversation.title != automatic:
            self._withdraw(conversation_id)

    def _on_deleted(self, deleted: tuple[ConversationSummary, ...], _undo: object) -> None:
        for summary in deleted:
            self._withdraw(summary.conversation_id)

    def _on_preferences_changed(self) -> None:
        if not self._preferences.value.name_chats:
            for conversation_id in list(self._asked):
                self._withdraw(conversation_id)

    def _withdraw(self, conversation_id: ConversationId) -> None:
        if conversation_id in self._asked:
            _, asked = self._asked.pop(conversation_id)
            if not self._is_over:
                self._bridge.engine.withdraw(asked)


def _ignore(_problem: Problem) -> None:
    """Leave the automatic title: the conversation cannot be loaded."""
