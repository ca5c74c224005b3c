"""Costs of actions, asked for the place below the pointer: tokens and time to read. Main thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QObject

from app.controllers.chat_services import ChatServices
from app.controllers.chat_states import ChatStates
from app.controllers.count_question import CountQuestion
from app.controllers.requests import counted_regenerate, turn_without_draft
from app.conversation.tree import (
    Conversation,
    NodeId,
    Setup,
    has_messages,
    neighbour_version,
    show_version,
)
from app.viewmodels.chat_state import counted_state
from app.viewmodels.cost import chat_line, cost_line
from engine.events import ModelFacts
from engine.questions import NextPrompt, TokensCounted
from engine.types import ConversationId, Request

Tell = Callable[[str], object]  # called with the cost as a line, if the engine knows it
_Prompt = NextPrompt | Request
_Use = Callable[[TokensCounted], object]


class ActionCosts(QObject):
    """Asks the engine for one cost at a time. A newer question withdraws the one before.

    Nothing is told if no model is loaded, if the conversation is being answered, or if the template
    refuses its messages.
    """

    def __init__(self, services: ChatServices, states: ChatStates) -> None:
        super().__init__()
        self._desk = services.desk
        self._turns = services.turns
        self._models = services.models
        self._rate = services.rate
        self._states = states
        self._question = CountQuestion(services.bridge)
        # The conversation that is loaded for a question, and the function that gets its cost.
        self._loading: tuple[ConversationId, Tell] | None = None
        services.desk.expected.connect(self._on_expected)

    def stop(self) -> None:
        """Ask nothing more, because the app is closing."""
        self._question.stop()

    def of_regenerate(self, chat: ConversationId, reply_id: NodeId, tell: Tell) -> None:
        """Tell the cost of another version of an answer."""
        conversation, cards = self._desk.get(chat), self._models.cards
        if reply_id in conversation.nodes:
            self._ask(
                conversation,
                partial(self._tell_cost, tell),
                lambda facts: counted_regenerate(conversation, reply_id, facts, cards),
            )

    def of_neighbour(self, chat: ConversationId, node_id: NodeId, step: int, tell: Tell) -> None:
        """Tell the cost of the next message, if the version `step` places further was on show."""
        conversation = self._desk.get(chat)
        if node_id not in conversation.nodes:
            return
        neighbour = neighbour_version(conversation, node_id, step)
        if neighbour is not None:
            use = partial(self._tell_cost, tell)
            self._ask_next(use, show_version(conversation, neighbour))

    def of_setup(self, chat: ConversationId, setup: Setup, tell: Tell) -> None:
        """Tell the cost of the next message with other options."""
        use = partial(self._tell_cost, tell)
        self._ask_next(use, replace(self._desk.get(chat), setup=setup))

    def of_chat(self, chat: ConversationId, tell: Tell) -> None:
        """Tell the state of a conversation and the cost of its next message.

        The conversation need not be loaded.
        """
        self._drop()
        self._loading = chat, tell
        self._desk.expect(chat)

    def _drop(self) -> None:
        """Withdraw the open question."""
        self._loading = None
        self._question.withdraw()

    def _on_expected(self, chat: ConversationId) -> None:
        if self._loading is not None and self._loading[0] == chat:
            use = partial(self._tell_of_chat, chat, self._loading[1])
            self._ask_next(use, self._desk.get(chat))

    def _ask_next(self, use: _Use, conversation: Conversation) -> None:
        self._ask(conversation, use, partial(turn_without_draft, conversation))

    def _ask(
        self,
        conversation: Conversation,
        use: _Use,
        make: Callable[[ModelFacts], _Prompt],
    ) -> None:
        self._drop()
        facts = self._models.status.facts
        is_answered = self._turns.live_in(conversation.conversation_id) is not None
        if facts is not None and not is_answered and has_messages(conversation):
            self._question.ask(make(facts), use)

    def _tell_cost(self, tell: Tell, counted: TokensCounted) -> None:
        tell(cost_line(self._rate.to_read(counted)))

    def _tell_of_chat(self, chat: ConversationId, tell: Tell, counted: TokensCounted) -> None:
        state = counted_state(counted)
        self._states.note_counted(chat, state)
        tell(chat_line(state, self._rate.to_read(counted)))
