"""The state of each chat for the list: in memory, on disk, or to be read. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal

from app.bridge.engine_bridge import EngineBridge, IdleEvent
from app.controllers.memory_map import MemoryMap
from app.viewmodels.chat_state import ChatState, chat_state
from engine.cache_figures import HeldChat
from engine.clients import ModelEvent, RequestEvent
from engine.events import (
    IdleStopped,
    IdleWorking,
    ModelLoaded,
    PrefillProgress,
    RequestFailed,
    RequestFinished,
    RequestStarted,
)
from engine.types import ConversationId

# Time from the first change to a report. A change of chats, an answer and its idle work then need
# one report.
LOOK_MS = 1000
# The same while prompts are read: the state in memory grows all the time.
READING_LOOK_MS = 5000


class ChatStates(QObject):
    """The states by the newest report of the engine. Nothing is known while no model is loaded."""

    changed = Signal()

    def __init__(self, bridge: EngineBridge, reports: MemoryMap) -> None:
        super().__init__()
        self._is_loaded = False
        self._is_over = False  # True once the app is closing
        self._reports = reports
        # The entries of the newest report; None while it is not known.
        self._held: dict[ConversationId, HeldChat] | None = None
        # States that were counted since the report, each with the entry that it replaces.
        self._counted: dict[ConversationId, tuple[HeldChat | None, ChatState]] = {}
        # The newest reading of a prompt: its conversation and the length of the prompt
        self._reading: tuple[ConversationId | None, int] | None = None
        self._look = QTimer(self, singleShot=True)
        self._look.timeout.connect(reports.ask)
        bridge.model_changed.connect(self._on_model_changed)
        bridge.request_changed.connect(self._on_request_changed)
        bridge.idle_changed.connect(self._on_idle_changed)
        reports.changed.connect(self._on_reported)

    def stop(self) -> None:
        """Ask for no more reports: the engine is being closed."""
        self._is_over = True
        self._look.stop()

    def look(self) -> None:
        """Ask for a report soon, because the states have changed."""
        self._look_in(LOOK_MS)

    def _look_in(self, delay_ms: int) -> None:
        is_sooner = not self._look.isActive() or self._look.remainingTime() > delay_ms
        if is_sooner and not self._is_over:
            self._look.start(delay_ms)

    def of(self, conversation_id: ConversationId) -> ChatState | None:
        """Return the state of a chat; None if it is not known."""
        if self._held is None:
            return None
        held = self._held.get(conversation_id)
        replaced, state = self._counted.get(conversation_id, (None, None))
        return state if state is not None and replaced == held else chat_state(held)

    def note_counted(self, conversation_id: ConversationId, state: ChatState) -> None:
        """Use a state that was counted, until a report has another entry of the conversation.

        The report does not know that a conversation could restore what another one has read, and it
        is about the branch used last, not the one on show.
        """
        if self._held is not None:
            self._counted[conversation_id] = self._held.get(conversation_id), state
            self.changed.emit()

    @property
    def in_memory(self) -> set[ConversationId]:
        """The conversations whose state is in memory, also those that are not listed."""
        known = {*(self._held or ()), *self._counted}
        return {one for one in known if self.of(one) is ChatState.MEMORY}

    def _on_model_changed(self, event: ModelEvent) -> None:
        self._is_loaded = isinstance(event, ModelLoaded)
        if self._is_loaded:
            self.look()
        else:
            self._counted.clear()
            self._set(None)  # the model before is gone, also if the load of another one fails

    def _on_request_changed(self, event: RequestEvent) -> None:
        if isinstance(event, (RequestStarted, RequestFinished, RequestFailed)):
            self.look()
        elif isinstance(event, PrefillProgress):
            self._look_in(READING_LOOK_MS)

    def _on_idle_changed(self, event: IdleEvent) -> None:
        """Look when the work ends, or begins to read a prompt, which a report then contains."""
        before, self._reading = self._reading, None
        if isinstance(event, IdleWorking) and event.kind.is_reading:
            self._reading = event.conversation_id, event.num_cached + event.total
        if isinstance(event, IdleStopped) or self._reading not in (None, before):
            self.look()
        elif self._reading is not None:
            self._look_in(READING_LOOK_MS)

    def _on_reported(self) -> None:
        report = self._reports.report
        if report is not None and self._is_loaded:
            self._set({one.conversation_id: one for one in report.chats})

    def _set(self, held: dict[ConversationId, HeldChat] | None) -> None:
        if held != self._held:
            self._held = held
            self.changed.emit()
