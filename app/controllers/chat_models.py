"""The model of each conversation: the one that wrote its last answer. Main thread.

One model is in use at a time. If the conversation on show was answered by another model, the window
asks which of them continues it. Nothing is read ahead, and no answer begins, before the user has
chosen. Three actions choose the model for the conversation on show:

    stay()            the model in use
    choosing a model  in the picker or elsewhere: that model
    use()             the model of the conversation, which is loaded

A choice is stored with its conversation, and holds while its model is in use. A fork or a duplicate
has the choice of its original.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.controllers.chat_services import ChatServices
from app.viewmodels.model_question import uses_other_model, where_now
from app.viewmodels.notes import last_generation
from engine.types import ConversationId


class ChatModels(QObject):
    """The conversations that the user continues with another model than before."""

    # emitted when the user continues the shown conversation with the model in use
    stayed = Signal()

    def __init__(self, services: ChatServices) -> None:
        super().__init__()
        self._desk = services.desk
        self._turns = services.turns
        self._models = services.models
        self._library = services.library
        services.models.chosen.connect(self._keep)

    def must_ask(self, conversation_id: ConversationId) -> bool:
        """Return True if the user must choose between the model in use and the conversation's.

        The conversation must be in memory.
        """
        status = self._models.status
        return (
            self._turns.live_in(conversation_id) is None
            and not self.is_chosen(conversation_id)
            and uses_other_model(self._desk.get(conversation_id), status, self._models.cards)
        )

    def is_chosen(self, conversation_id: ConversationId) -> bool:
        """Return True if the user has chosen the model in use for the conversation."""
        chosen = self._desk.get(conversation_id).chosen_model
        return bool(chosen) and chosen == self._models.status.path

    def offers_seeing_model(self, conversation_id: ConversationId) -> bool:
        """Return True if the user must choose, and the conversation's own model sees pictures."""
        generation = last_generation(self._desk.get(conversation_id))
        if generation is None or not self.must_ask(conversation_id):
            return False
        path = generation.model_path
        return any(card.sees and card.is_at(path) for card in self._models.cards)

    def stay(self) -> None:
        """Continue the conversation on show with the model in use."""
        self._keep(Path(self._models.status.path))
        self.stayed.emit()

    def use(self) -> None:
        """Load the model that wrote the last answer of the conversation on show."""
        generation = last_generation(self._desk.get(self._library.current))
        if generation is not None:
            self._models.choose(Path(where_now(generation.model_path, self._models.cards)))

    def _keep(self, path: Path) -> None:
        conversation = self._desk.get(self._library.current)
        if last_generation(conversation) is not None:  # else there is nothing to choose
            self._desk.save(replace(conversation, chosen_model=str(path)))
