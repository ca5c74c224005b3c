"""Running turns: from the user's action until the reply is complete in the tree. Main thread.

turn_starter.py calls start_turns(). chat.py, deleted_chats.py and undo steps call stop(). `Turns`
submits the turn to the engine, handles the engine's events and saves the streamed text every 500
ms. A turn does not depend on the view: it continues while another conversation is shown. A turn has
one of three states. The fields `facts` and `planned` of RunningTurn tell them apart:

    state      facts  planned  meaning                          next
    waiting    None   None     no model is ready yet            submitted when the model is ready;
                                                                refused if no model will be ready
    submitted  set    None     in the engine's queue            started; refused if the request
                                                                fails or is stopped; waiting if
                                                                another model is chosen
    started    set    set      the engine prefills and decodes  ended: finished, stopped or failed

desk.py calls a started turn "accepted". Before that, the desk stores only the text of the turn, as
part of the conversation's draft.

Several turns of a conversation can run at once: they answer the same message, and their replies are
versions of one reply. The engine reads the prompt once, for the first of them.

turn_ends.py has what becomes of a turn that ends or is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import assert_never

from PySide6.QtCore import QObject, Signal

from app.bridge.engine_bridge import EngineBridge
from app.bridge.store_lane import StoreLane
from app.controllers.desk import Desk
from app.controllers.models import ModelsController
from app.controllers.origin import Origin
from app.controllers.preferences import Preferences
from app.controllers.requests import generation_of, make_request, problem_of_turn, problem_with
from app.controllers.running_turn import RunningTurn, TextSaver, turns_of
from app.controllers.turn_ends import TurnEnds
from app.controllers.wait_lines import WaitLines
from app.conversation.actions import Turn
from app.conversation.attachments import Files
from app.conversation.forks import version_on_show
from app.conversation.replies import set_generation
from app.conversation.tree import NodeId
from app.viewmodels.live import LiveReply
from app.viewmodels.models import waiting_phase
from app.viewmodels.phases import Phase, Reading, Stopping, Waiting
from engine.clients import RequestEvent
from engine.events import (
    ModelFacts,
    PrefillProgress,
    RequestFailed,
    RequestFinished,
    RequestQueued,
    RequestStarted,
    TextDelta,
)
from engine.problem import Problem
from engine.types import ConversationId, FinishReason, RequestId
from engine.usage import PromptPlan, Usage

# Number of tokens up to which feeding a prompt is too fast to show progress.
NO_PROGRESS_LEN = 256


class Turns(QObject):
    """The running turns. Those of one conversation answer the same message."""

    text_arrived = Signal(object, object, str)  # arguments: NodeId of the reply, Channel, new text
    line_changed = Signal(object)  # argument: NodeId of a reply with a changed state line
    # argument: ConversationId of a conversation whose turn has begun, changed state or ended
    activity_changed = Signal(object)
    stop_requested = Signal(object)  # argument: ConversationId; its turn is about to be stopped
    rate_changed = Signal(object)  # argument: ConversationId; its decoding speed may have changed
    answered = Signal(object)  # see TurnEnds
    time_saved = Signal(float)  # argument: milliseconds of reading that an ended answer was spared
    refused = Signal(object)  # see TurnEnds

    def __init__(
        self,
        bridge: EngineBridge,
        store: StoreLane,
        desk: Desk,
        models: ModelsController,
        preferences: Preferences,
        origin: Origin,
    ) -> None:
        super().__init__()
        self._preferences = preferences
        self._engine = bridge.engine
        self._desk = desk
        self._models = models
        self._origin = origin
        self._running: list[RunningTurn] = []
        # the milliseconds of reading that a request of a model was spared; set by Core
        self.estimate_saved: Callable[[Usage, str], float] = lambda _usage, _path: 0.0
        self._saver = TextSaver(store, self._running, self)
        self.wait_lines = WaitLines(self._running, desk, origin.tick, self._set_phase, self)
        self.ends = TurnEnds(self._running, desk, origin.now)
        self.ends.removed.connect(self._on_removed)
        self.ends.activity_changed.connect(self.activity_changed)
        self.ends.answered.connect(self.answered)
        self.ends.refused.connect(self.refused)
        bridge.request_changed.connect(self._on_request_changed)
        bridge.idle_changed.connect(self.wait_lines.note_idle)
        models.status_changed.connect(self._on_status_changed)
        models.will_replace.connect(self._on_will_replace)

    @property
    def live(self) -> dict[NodeId, LiveReply]:
        """The streamed text of each running turn, by the NodeId of its reply."""
        return {running.reply_id: running.live for running in self._running}

    @property
    def answering(self) -> set[ConversationId]:
        """The conversations that have a running turn."""
        return {running.conversation_id for running in self._running}

    @property
    def writing(self) -> list[ConversationId]:
        """The conversations being answered. If the app quits, their replies are cut off."""
        return [one.conversation_id for one in self._running if one.has_started]

    @property
    def num_writing(self) -> int:
        return len(self.writing)

    @property
    def num_waiting(self) -> int:
        """Number of turns that the engine has not started. If the app quits, they are refused."""
        return len(self._running) - self.num_writing

    def live_in(self, conversation_id: ConversationId) -> LiveReply | None:
        """Return the streamed text of the conversation's running turn, or None if it has none.

        Of several turns it is the one on show, or the first if none is (as in reply_in).
        """
        running = self._find(conversation_id)
        return None if running is None else running.live

    def reply_in(self, conversation_id: ConversationId) -> NodeId | None:
        """Return the node of the conversation's running reply, or None."""
        running = self._find(conversation_id)
        return None if running is None else running.reply_id

    def replies_in(self, conversation_id: ConversationId) -> tuple[NodeId, ...]:
        """Return the nodes of all running replies of a conversation, in order of their start."""
        return tuple(running.reply_id for running in turns_of(self._running, conversation_id))

    def unstopped_in(self, conversation_id: ConversationId) -> tuple[NodeId, ...]:
        """Return the nodes of those running replies of a conversation that were not stopped."""
        turns = turns_of(self._running, conversation_id)
        return tuple(running.reply_id for running in turns if not running.stopped)

    def is_stopping(self, conversation_id: ConversationId) -> bool:
        """Return True if all turns of the conversation were stopped, and have not ended yet."""
        turns = turns_of(self._running, conversation_id)
        return bool(turns) and all(running.stopped for running in turns)

    def start_turns(self, turns: Sequence[Turn], text: str, files: Files = ()) -> None:
        """Show turns, and submit them to the engine now or as soon as the model is ready.

        ChatController calls this. The conversation must not have a running turn. If the loaded
        model cannot continue the reply of a turn, the turn is refused before this call returns.

        Args:
            turns: the planned turn, or several that answer the same message (with_answers). Their
                conversation replaces the one in memory.
            text: the user's text, which returns to the composer, or to the editor of an edited
                message, if the turn is refused. Empty if the turn adds no user message.
            files: the attachments that return to the composer together with the text.
        """
        status, conversation = self._models.status, turns[0].conversation
        conversation_id = conversation.conversation_id
        assert not turns_of(self._running, conversation_id), "one message is answered at a time"
        for turn in turns:
            running = RunningTurn(
                request_id=RequestId(self._origin.new_id()),
                turn=turn,
                text=text,
                live=LiveReply(waiting_phase(status), conversation.nodes[turn.reply_id]),
                sent_at=self._origin.tick(),
            )
            self._running.append(running)
        self._desk.pin(conversation_id)
        self._desk.hold(conversation, text, files)
        self.wait_lines.start()
        if status.facts is not None:
            for running in turns_of(self._running, conversation_id):
                self._submit(running, status.facts)
        self.activity_changed.emit(conversation_id)

    def stop(self, conversation_id: ConversationId) -> None:
        """Stop all turns of the conversation. Do nothing if it has none.

        A waiting turn is refused at once. A submitted or started turn is cancelled in the engine
        and ends later, with an event:

            RequestFailed      the request was still in the queue: the turn is refused
            RequestFinished    the engine had started the request, perhaps only its prefill: the
                               reply is kept with its text so far, which may be empty
        """
        turns = turns_of(self._running, conversation_id)
        if turns:
            self.stop_requested.emit(conversation_id)
            # Stop the first turn last, else the engine would read the prompt for the next one.
            for running in reversed(turns):
                self._stop(running)

    def stop_reply(self, reply_id: NodeId) -> None:
        """Stop the turn of one reply, like stop(). Do nothing if the reply is not running."""
        running = next((one for one in self._running if one.reply_id == reply_id), None)
        if running is None:
            return
        if len(turns_of(self._running, running.conversation_id)) == 1:
            self.stop(running.conversation_id)
        else:
            self._stop(running)

    def _stop(self, running: RunningTurn) -> None:
        if running.facts is None:
            self.ends.refuse(running, None)
            return
        # The engine first ends its forward pass, which may take seconds.
        if running.live.num_tokens == 0:
            running.show_phase(Stopping(), self._origin.tick())
            self.line_changed.emit(running.reply_id)
        running.stopped = True
        self.activity_changed.emit(running.conversation_id)
        self._engine.cancel(running.request_id)

    def _submit(self, running: RunningTurn, facts: ModelFacts) -> None:
        """Send the request of a waiting turn, or refuse a turn that the model cannot continue."""
        conversation = self._desk.get(running.conversation_id)
        problem = problem_of_turn(running.turn, facts, self._models.gone)
        if problem is not None:
            self.ends.refuse(running, problem)
            return
        setup = running.turn.setup or conversation.setup
        if setup.faster_answers is None:
            setup = replace(setup, faster_answers=self._preferences.value.faster_answers)
        # The engine reads the prompt for the first of several answers, and the others follow.
        turns = turns_of(self._running, running.conversation_id)
        first, *others = (one for one in turns if not one.has_started)
        request = make_request(
            running.request_id,
            running.turn,
            setup,
            facts,
            new_seed=self._origin.new_seed(),
            cards=self._models.cards,
            follows=None if first is running else first.request_id,
            shares_prompt=bool(others),
        )
        running.facts = facts
        running.submitted_at = self._origin.tick()
        generation = generation_of(request, running.turn, facts)
        # This call changes only the conversation in memory. The desk stores the turn when accept()
        # is called.
        self._desk.save(set_generation(conversation, running.reply_id, generation))
        self._set_phase(running, Waiting(0))
        self._engine.submit(request)

    def _on_status_changed(self) -> None:
        status = self._models.status
        for running in [one for one in self._running if not one.has_started]:
            if running.facts is not None:
                # The engine loads a model again that it unloaded when it was idle.
                if status.will_be_ready:
                    self._set_phase(running, waiting_phase(status))
                elif not isinstance(running.live.phase, Waiting):
                    self._set_phase(running, Waiting(0))
            elif status.facts is not None:
                self._submit(running, status.facts)
            elif status.will_be_ready:
                self._set_phase(running, waiting_phase(status))
            else:
                self.ends.refuse(running, problem_with(status))

    def _on_request_changed(self, event: RequestEvent) -> None:
        running = next((one for one in self._running if one.request_id == event.request_id), None)
        if running is None:
            # Ignore events of a cancelled request: its turn was refused or has a new request id.
            return
        match event:
            case RequestQueued():
                self._set_phase(running, self.wait_lines.queued_phase(running, event))
            case RequestStarted(plan=plan, restore_ms=restore_ms):
                self._on_started(running, plan, restore_ms)
            case PrefillProgress(done=done, total=total, eta_s=eta_s):
                chat = running.conversation_id
                is_shared = any(one.conversation_id != chat for one in self._running)
                phase = Reading(done=done, total=total, eta_s=eta_s, is_shared=is_shared)
                self._set_phase(running, phase)
            case TextDelta():
                self._on_delta(running, event)
            case RequestFinished():
                self._on_finished(running, event)
            case RequestFailed(problem=problem):
                self._on_request_failed(running, problem)
            case _:
                assert_never(event)

    def _on_started(self, running: RunningTurn, plan: PromptPlan, restore_ms: float) -> None:
        """Store the turn, and show the progress of a long prefill."""
        planned = running.plan(plan, restore_ms, self._origin.tick())
        self._desk.accept(running.conversation_id)
        self._models.note_answering()
        fed = plan.replayed + plan.read
        reading = Reading(done=0, total=fed, eta_s=None)
        self._set_phase(running, reading if fed > NO_PROGRESS_LEN else planned)

    def _on_delta(self, running: RunningTurn, delta: TextDelta) -> None:
        live = running.live
        now = self._origin.tick()
        # The first text has arrived: show the final state line instead of the progress of prefill.
        if live.num_tokens == 0 and running.planned is not None:
            running.planned = replace(running.planned, wait_ms=(now - running.sent_at) * 1e3)
            self._set_phase(running, running.planned)
        live.append_delta(delta.channel, delta.text, num_tokens=delta.num_tokens, now=now)
        self._saver.start()
        self.text_arrived.emit(running.reply_id, delta.channel, delta.text)
        self.rate_changed.emit(running.conversation_id)

    def _on_finished(self, running: RunningTurn, finished: RequestFinished) -> None:
        conversation = self._desk.get(running.conversation_id)
        usage = self._whole_usage(running, finished.usage)
        ended = running.finished_in(conversation, replace(finished, usage=usage))
        is_answer = finished.reason is not FinishReason.CANCELLED
        self.ends.end(running, ended, is_answer=is_answer)

    def _whole_usage(self, running: RunningTurn, usage: Usage) -> Usage:
        """Return the usage since the user's action, with the time saved. Report this time."""
        saved_ms = 0.0 if running.facts is None else self.estimate_saved(usage, running.facts.path)
        if saved_ms:
            self.time_saved.emit(saved_ms)
        return replace(running.whole_usage(usage), saved_ms=saved_ms)

    def _on_request_failed(self, running: RunningTurn, problem: Problem) -> None:
        # If the model was lost, the window says why and offers to load it again, in one place. A
        # turn that has not started then fails with another problem: no model is loaded.
        why_lost = self._models.status.problem
        if not running.has_started:
            self.ends.refuse(running, None if running.stopped or why_lost else problem)
        elif problem == why_lost:
            self.ends.end_stopped(running)
        else:
            conversation = self._desk.get(running.conversation_id)
            self.ends.end(running, running.failed_in(conversation, problem), is_answer=True)

    def _on_will_replace(self) -> None:
        """Cancel all submitted requests, because another model is about to be loaded.

        A started turn ends with its partial reply. A turn that has not started is refused if the
        user has stopped it. Otherwise the turn waits again and is submitted to the new model, with
        a new request id, so that the events of the cancelled request are ignored.
        """
        for running in list(self._running):
            if running.facts is None:
                continue
            self._engine.cancel(running.request_id)
            if running.has_started:
                continue
            if running.stopped:
                # The user has stopped this turn, so it must not be submitted again. Its last event
                # has not arrived yet.
                self.ends.refuse(running, None)
            else:
                self._running.remove(running)
                running.request_id = RequestId(self._origin.new_id())
                running.facts = None
                if running.turn.plain is not None:
                    conversation = self._desk.get(running.conversation_id)
                    self._desk.save(running.without_preview_in(conversation, running.turn.plain))
                self._running.append(running)

    def _on_removed(self) -> None:
        if not self._running:
            self._saver.stop()
            self.wait_lines.stop()

    def _set_phase(self, running: RunningTurn, phase: Phase) -> None:
        if running.stopped:
            return  # the last phase stays until the engine reports the end
        running.show_phase(phase, self._origin.tick())
        self.line_changed.emit(running.reply_id)
        self.activity_changed.emit(running.conversation_id)

    def _find(self, conversation_id: ConversationId) -> RunningTurn | None:
        """Return the running turn whose reply is on show, else the first of the conversation."""
        turns = turns_of(self._running, conversation_id)
        if len(turns) < 2:
            return turns[0] if turns else None
        shown = version_on_show(self._desk.get(conversation_id), turns[0].turn.user_id)
        return next((running for running in turns if running.reply_id == shown), turns[0])
