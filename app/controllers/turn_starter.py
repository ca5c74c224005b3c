"""The start of turns, planned from the current conversation, or the reason why not. Main thread."""

from __future__ import annotations

from collections.abc import Callable

from app.controllers.desk import Desk
from app.controllers.models import ModelsController
from app.controllers.origin import Origin
from app.controllers.refusal import Refusal
from app.controllers.requests import problem_with
from app.controllers.turns import Turns
from app.conversation.actions import Turn
from app.conversation.answers import check_answers_differ, with_answers
from app.conversation.attachments import Attachment
from app.conversation.tree import Conversation, NodeId
from engine.errors import EngineError
from engine.types import ConversationId

Plan = Callable[[Conversation], Turn]


class TurnStarter:
    """Starts turns, unless an answer is running or no model can answer."""

    def __init__(
        self,
        desk: Desk,
        turns: Turns,
        models: ModelsController,
        origin: Origin,
        may_begin: Callable[[ConversationId], bool],
        refuse: Callable[[Refusal], object],
    ) -> None:
        """Create the starter.

        Args:
            desk: has the conversations.
            turns: get the planned turns.
            models: tell whether a model can answer.
            origin: source of the ids of replies.
            may_begin: returns False if the user must choose a model before an answer.
            refuse: reports why no turn was started.
        """
        self._desk = desk
        self._turns = turns
        self._models = models
        self._origin = origin
        self._may_begin = may_begin
        self._refuse = refuse

    def start(
        self,
        conversation_id: ConversationId,
        text: str,
        plan: Plan,
        files: tuple[Attachment, ...] = (),
        answers: int = 1,
    ) -> bool:
        """Make the plan from the current conversation and start its turn, or several of it.

        Return False if no turn was started: an answer is running, the user must choose a model
        first, or the reason was reported as a Refusal.

        Args:
            conversation_id: a conversation in memory.
            text: the user's text, for a later Refusal.
            plan: called at most once, before this call returns. It may raise an EngineError, for
                example because the message is empty.
            files: the attachments that return to the composer with the text.
            answers: number of answers that are written at once.
        """
        is_live = self._turns.live_in(conversation_id) is not None
        if is_live or not self._may_begin(conversation_id):
            return False
        status = self._models.status
        try:
            turn = plan(self._desk.get(conversation_id))
            turns = with_answers(turn, [NodeId(self._origin.new_id()) for _ in range(1, answers)])
            if answers > 1:
                facts = status.facts
                check_answers_differ(turn.conversation.setup, facts and facts.default_sampling)
        except EngineError as error:
            self._refuse(Refusal(conversation_id, "", error.problem))
            return False
        if status.facts is None and not status.will_be_ready:
            self._refuse(Refusal(conversation_id, "", problem_with(status)))
            return False
        self._turns.start_turns(turns, text, files)
        return True
