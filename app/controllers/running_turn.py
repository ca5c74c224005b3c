"""A turn that has not ended, and the saving of its text. Main thread."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from PySide6.QtCore import QObject, QTimer

from app.bridge.store_lane import StoreLane
from app.conversation.actions import Turn
from app.conversation.replies import fail_reply, finish_reply, stop_reply
from app.conversation.tree import Conversation, MessageStatus, NodeId, replace_node
from app.viewmodels.live import LiveReply
from app.viewmodels.phases import Importing, Loading, Phase, Planned, Preparing, Reading, Waiting
from app.words import state as words
from engine.events import ModelFacts, RequestFinished
from engine.problem import Problem
from engine.types import ConversationId, RequestId
from engine.usage import PromptPlan, Usage

# Interval between saves of streamed text. A crash loses less than a second of text, including the
# time that a write takes.
SAVE_MS = 500


@dataclass(slots=True, eq=False)
class RunningTurn:
    """A turn that has not ended yet. See turns.py for its states."""

    request_id: (
        RequestId  # of the newest request; a turn that waits for another model gets a new one
    )
    turn: Turn
    text: str  # the user's text, to put back into its field if the turn is refused
    live: LiveReply  # text that has arrived so far
    sent_at: float  # time in seconds (Origin.tick) of the user's action
    submitted_at: float = 0.0  # time in seconds of the last submission to the engine
    facts: ModelFacts | None = None  # facts of the model; None until the turn is submitted
    # Numbers of restored and fed prompt tokens. None until the engine has started the turn.
    planned: Planned | None = None
    # True after the user has stopped a submitted or started turn. The turn ends when the engine
    # reports the end of the request.
    stopped: bool = False
    saved_tokens: int = 0  # live.num_tokens when the text was last saved
    phase_at: float = 0.0  # time in seconds of the last change of the phase
    load_ms: float = 0.0  # milliseconds of the phases in which no model was ready

    def show_phase(self, phase: Phase, now: float) -> None:
        """Set the phase of the line. Count the time of the phase before if no model was ready."""
        if isinstance(self.live.phase, Preparing | Importing | Loading):
            self.load_ms += (now - (self.phase_at or self.sent_at)) * 1e3
        self.phase_at = now
        self.live.phase = self._late(phase) if self.live.is_late else phase

    def _late(self, phase: Phase) -> Phase:
        """Return the phase that a late turn shows: the work in progress, and not its plan."""
        match phase:
            case Planned(plan=plan, wait_ms=None) if plan.read + plan.replayed:
                return Reading(done=0, total=plan.read + plan.replayed, eta_s=None)
            case Waiting(ahead=0, text=""):
                return Waiting(0, words.WAITING_FOR_MODEL)
            case _:
                return phase

    @property
    def has_started(self) -> bool:
        return self.planned is not None

    @property
    def conversation_id(self) -> ConversationId:
        return self.turn.conversation.conversation_id

    @property
    def reply_id(self) -> NodeId:
        return self.turn.reply_id

    def plan(self, plan: PromptPlan, restore_ms: float, now: float) -> Planned:
        """Set and return the phase of a turn that the engine has started."""
        queue_ms = max(0.0, (now - self.sent_at) * 1e3 - restore_ms)
        planned = Planned(plan=plan, restore_ms=restore_ms, queue_ms=queue_ms, load_ms=self.load_ms)
        self.planned = planned
        return planned

    def whole_usage(self, usage: Usage) -> Usage:
        """Return the usage as measured from the user's action."""
        return usage.delayed(self._delay_ms(usage), load_ms=self.load_ms)

    def _delay_ms(self, usage: Usage) -> float:
        """Return the milliseconds that the user waited for the first text beyond usage.ttft_ms.

        They passed before the submission, while no model was ready, and on the way to the window.
        """
        if self.planned is not None and self.planned.wait_ms is not None:
            return max(0.0, self.planned.wait_ms - usage.ttft_ms)
        return (self.submitted_at - self.sent_at) * 1e3

    def finished_in(self, conversation: Conversation, finished: RequestFinished) -> Conversation:
        """Return the conversation with the reply of a request that has ended without a problem."""
        reasoning_s = self.live.reasoning_s
        return finish_reply(conversation, self.reply_id, finished, reasoning_s=reasoning_s)

    def stopped_in(self, conversation: Conversation) -> Conversation:
        """Return the conversation with the reply marked as stopped, with the text so far."""
        content, reasoning = self.live.content, self.live.reasoning
        return stop_reply(conversation, self.reply_id, content=content, reasoning=reasoning)

    def quit_in(self, conversation: Conversation) -> Conversation:
        """Return the conversation with a note that the end of the app has cut the reply off.

        A reply that was complete by then, or that the user has stopped, gets no note.
        """
        node = conversation.nodes[self.reply_id]
        is_cut = node.status is MessageStatus.STOPPED and not self.stopped
        if not is_cut or node.generation is None:
            return conversation
        generation = replace(node.generation, was_quit=True)
        return replace_node(conversation, replace(node, generation=generation))

    def without_preview_in(self, conversation: Conversation, plain: Turn) -> Conversation:
        """Return the conversation with an empty reply, which another model writes from its start.

        plain: the turn without the preview of the model before.
        """
        self.turn, empty = plain, plain.conversation.nodes[self.reply_id]
        self.live = LiveReply(self.live.phase, empty)
        return replace_node(conversation, empty)

    def failed_in(self, conversation: Conversation, problem: Problem) -> Conversation:
        """Return the conversation with the reply marked as failed, with the text so far."""
        content, reasoning = self.live.content, self.live.reasoning
        return fail_reply(
            conversation, self.reply_id, problem, content=content, reasoning=reasoning
        )


def turns_of(running: Iterable[RunningTurn], conversation_id: ConversationId) -> list[RunningTurn]:
    """Return those running turns that are of a conversation."""
    return [one for one in running if one.conversation_id == conversation_id]


class TextSaver(QObject):
    """Saves the new text of the running turns every SAVE_MS, between start() and stop()."""

    def __init__(self, store: StoreLane, turns: Collection[RunningTurn], parent: QObject) -> None:
        """Create a saver. `turns` are the running turns, and change with them."""
        super().__init__(parent)
        self._store = store
        self._turns = turns
        self._timer = QTimer(self, interval=SAVE_MS)
        self._timer.timeout.connect(self._save_texts)

    def start(self) -> None:
        if not self._timer.isActive():
            self._timer.start()

    def stop(self) -> None:
        self._timer.stop()

    def _save_texts(self) -> None:
        for running in self._turns:
            if running.live.num_tokens > running.saved_tokens:
                running.saved_tokens = running.live.num_tokens
                self._save_text(running.reply_id, running.live.content, running.live.reasoning)

    def _save_text(self, reply_id: NodeId, content: str, reasoning: str) -> None:
        # A failure needs no report, because the text is saved again with the ended reply.
        self._store.run(
            lambda store: store.save_text(reply_id, content=content, reasoning=reasoning),
            on_error=lambda _problem: None,
        )
