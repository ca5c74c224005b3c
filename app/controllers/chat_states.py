"""The state of each chat for the list: in memory, on disk, or to be read. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal

from app.bridge.engine_bridge import EngineBridge, IdleEvent
from app.controllers.memory_map import MemoryMap
from app.viewmodels.chat_state import ChatState, chat_state
from engine.clients import ModelEvent, RequestEvent
from engine.events import IdleStopped, ModelLoaded, RequestFailed, RequestFinished
from engine.types import ConversationId

# Time from the first change to a report. A change of chats, an answer and its idle work then need one
# report.
LOOK_MS = 1000


class ChatStates(QObject):
    """The states by the newest report of the engine. Nothing is known while no model is loaded."""

    changed = Signal()

    def __init__(self, bridge: EngineBridge, reports: MemoryMap) -> None:
        super().__init__()
        self._is_loaded = False
        self._is_over = False  # True once the app is closing
        self._reports = reports
        self._states: dict[ConversationId, ChatState] | None = None
        self._look = QTimer(self, singleShot=True, interval=LOOK_MS)
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
        if not self._is_over and not self._look.isActive():
            self._look.start()

    def of(self, conversation_id: ConversationId) -> ChatState | None:
        """Return the state of a chat; None if it is not known."""
        if self._states is None:
            return None
        return self._states.get(conversation_id, ChatState.UNREAD)

    def _on_model_changed(self, event: ModelEvent) -> None:
        self._is_loaded = isinstance(event, ModelLoaded)
        if self._is_loaded:
            self.look()
        else:
            self._set(None)  # the model before is gone, also if the load of another one fails

    def _on_request_changed(self, event: RequestEvent) -> None:
        if isinstance(event, (RequestFinished, RequestFailed)):
            self.look()

    def _on_idle_changed(self, event: IdleEvent) -> None:
        if isinstance(event, IdleStopped):
            self.look()

    def _on_reported(self) -> None:
        report = self._reports.report
        if report is not None and self._is_loaded:
            self._set({one.conversation_id: chat_state(one) for one in report.chats})

    def _set(self, states: dict[ConversationId, ChatState] | None) -> None:
        if states != self._states:
            self._states = states
            self.changed.emit()
