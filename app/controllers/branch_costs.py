"""The costs of the branches in sight: what the next message would make the model read. Main thread.

The engine counts one branch at a time, the next one after the answer. All costs are dropped when
they may have changed: after a change of messages or options, after an answer, after idle work, and
with another model. While an answer is running in any chat, none is asked for: they would change
with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from PySide6.QtCore import QObject, Signal

from app.bridge.engine_bridge import IdleEvent
from app.controllers.chat_services import ChatServices
from app.controllers.count_question import CountQuestion
from app.controllers.requests import turn_without_draft
from app.conversation.forks import is_in_tree
from app.conversation.tree import Conversation, NodeId, show_branch
from app.viewmodels.branch_cost import BranchCost, branch_cost
from engine.events import IdleWorking, ModelFacts
from engine.questions import NextPrompt, TokensCounted
from engine.types import ConversationId

# Delay after a change, so that the engine has done its idle work or begun it, and a map that is
# scrolled fast asks for nothing.
ASK_MS = 300


class BranchCosts(QObject):
    """The costs that are known, by the last message of the branch."""

    changed = Signal()

    def __init__(self, services: ChatServices) -> None:
        super().__init__()
        self._desk = services.desk
        self._turns = services.turns
        self._models = services.models
        self._rate = services.rate
        self._chat_id: ConversationId | None = None
        self._wanted: Sequence[NodeId] = ()
        self.counted: dict[NodeId, TokensCounted] = {}
        self._refused: set[NodeId] = set()  # branches of which the engine can make no prompt
        # True while idle work reads: the costs of its chat change with it.
        self._is_idle_reading = False
        self._question = CountQuestion(services.bridge, ASK_MS)
        self._question.due.connect(self._ask)
        services.bridge.idle_changed.connect(self._on_idle_changed)
        services.models.status_changed.connect(self._drop)
        services.chat.next_turn_changed.connect(self._on_chat_changed)
        services.turns.activity_changed.connect(self._drop)
        services.rate.changed.connect(self.changed)

    @property
    def costs(self) -> Mapping[NodeId, BranchCost]:
        return {
            end: branch_cost(self._rate.to_read(counted), is_too_long=counted.refusal is not None)
            for end, counted in self.counted.items()
        }

    def want(self, conversation_id: ConversationId, ends: Sequence[NodeId]) -> None:
        """Ask for the costs of these branches, and for no others any more."""
        self._wanted = ends
        if conversation_id != self._chat_id or not ends:
            self._chat_id = conversation_id
            self._drop()
        elif any(end not in self.counted for end in ends):
            self._wait()

    def stop(self) -> None:
        """Ask for nothing any more, because the app is closing."""
        self._question.stop()

    def _wait(self) -> None:
        """Withdraw the open question, and ask for the wanted costs after the delay."""
        if self._wanted:
            self._question.wait()
        else:
            self._question.withdraw()

    def _on_chat_changed(self, conversation_id: ConversationId) -> None:
        if conversation_id == self._chat_id:
            self._drop()

    def _on_idle_changed(self, event: IdleEvent) -> None:
        was_reading = self._is_idle_reading
        self._is_idle_reading = isinstance(event, IdleWorking) and event.kind.is_reading
        if self._is_idle_reading != was_reading:
            self._drop()

    def _drop(self, _chat: object = None) -> None:
        """Drop the costs, which may be wrong now. Ask again after the delay."""
        self._wait()
        self._refused.clear()
        if self.counted:
            self.counted.clear()
            self.changed.emit()

    def _ask(self) -> None:
        """Ask for the first cost in sight that is not known."""
        facts, chat = self._models.status.facts, self._chat_id
        if facts is None or chat is None or self._turns.live or self._is_idle_reading:
            return
        conversation = self._desk.get(chat)
        unknown = (end for end in self._wanted if end not in self.counted.keys() | self._refused)
        end = next((one for one in unknown if is_in_tree(conversation, one)), None)
        if end is not None:
            prompt = branch_prompt(conversation, end, facts)
            self._question.ask(
                prompt, partial(self._on_counted, end), partial(self._on_refused, end)
            )

    def _on_counted(self, end: NodeId, counted: TokensCounted) -> None:
        self.counted[end] = counted
        self.changed.emit()
        self._ask()

    def _on_refused(self, end: NodeId) -> None:
        self._refused.add(end)
        self._ask()


def branch_prompt(conversation: Conversation, end: NodeId, facts: ModelFacts) -> NextPrompt:
    """Return the known beginning of the next prompt in a branch, without the draft."""
    return turn_without_draft(show_branch(conversation, end), facts)
