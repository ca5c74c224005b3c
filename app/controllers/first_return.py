"""The first return to a chat that spared the user much time: noted once, then never again.

A return is an answer in another conversation than that of the answer before it, or the first answer
after the start of the app. The conversation has an earlier answer: what its first one restores was
read for other chats, such as the documents of a folder. Before a rate of reading was measured, no
return is noted. Main thread.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.controllers.chat_services import ChatServices
from app.controllers.preferences import Preferences
from app.conversation.tree import Conversation
from app.viewmodels.first_return import return_note
from app.viewmodels.notes import last_generation
from engine.types import ConversationId


class FirstReturn(QObject):
    """Watches answers until one of them is worth the note."""

    noted = Signal(str)  # argument: the note

    def __init__(self, services: ChatServices, preferences: Preferences) -> None:
        super().__init__()
        self._desk = services.desk
        self._library = services.library
        self._preferences = preferences
        self._rate = services.rate
        self._last: ConversationId | None = None  # conversation of the last answer in this run
        if not preferences.value.return_noted:
            services.turns.answered.connect(self._on_answered)

    def _on_answered(self, conversation_id: ConversationId) -> None:
        is_return, self._last = conversation_id != self._last, conversation_id
        if not is_return or conversation_id != self._library.current:
            return
        conversation = self._desk.get(conversation_id)
        generation = last_generation(conversation)
        if self._preferences.value.return_noted or generation is None or generation.usage is None:
            return
        if _num_answers(conversation) < 2:
            return
        needed = self._rate.time(0, generation.usage.plan.restored)
        note = "" if needed is None else return_note(generation.usage, needed)
        if note:
            self._preferences.change(return_noted=True)
            self.noted.emit(note)


def _num_answers(conversation: Conversation) -> int:
    """Return the number of answers that have ended, in all branches."""
    generations = (node.generation for node in conversation.nodes.values())
    return sum(one is not None and one.usage is not None for one in generations)
