"""The cached state of each chat, for the chat list and the window Memory & Storage. Main thread."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QObject, QTimer, Signal

from app.bridge.engine_bridge import EngineBridge
from app.controllers.preferences import Preferences
from engine.cache_figures import HeldChats
from engine.clients import ModelEvent, RequestEvent
from engine.events import ModelLoading, TextDelta
from engine.types import ConversationId

LOOK_MS = 500  # least time between two reports
# Time between two reports while nothing happens. The engine writes to disk at rest, without an
# event.
REST_MS = 5000


class MemoryMap(QObject):
    """The newest report of the engine.

    While a window shows it, each event asks for another report. ChatStates asks at other times.
    """

    changed = Signal()  # a new report has come
    forgotten = Signal(object)  # argument: ids of the chats that the user has forgotten
    moved = Signal(object)  # argument: ids of the chats whose move to the disk has ended

    def __init__(self, bridge: EngineBridge, preferences: Preferences) -> None:
        super().__init__()
        self._bridge = bridge
        self._engine = bridge.engine
        self.report: HeldChats | None = None  # None before the first report
        self._is_shown = False
        self._is_old = False  # True if something has happened since the newest report
        self._wait = QTimer(self, singleShot=True, interval=LOOK_MS)
        self._wait.timeout.connect(self._look_again)
        self._rest = QTimer(self, interval=REST_MS)
        self._rest.timeout.connect(self.look)
        bridge.model_changed.connect(self._on_event)
        bridge.request_changed.connect(self._on_event)
        bridge.idle_changed.connect(self._on_event)
        preferences.changed.connect(self.look)

    def watch(self, *, shown: bool) -> None:
        """Ask for reports while a window shows them."""
        self._is_shown = shown
        if shown:
            self.look()
            self._rest.start()
        else:
            self._rest.stop()
            self._wait.stop()

    def stop(self) -> None:
        """Ask for no more reports: the engine is being closed."""
        self.watch(shown=False)

    def look(self) -> None:
        """Ask for a report at once, or LOOK_MS after the one before."""
        if not self._is_shown:
            return
        self._is_old = True
        if not self._wait.isActive():
            self._look_again()

    def forget(self, conversation_ids: Sequence[ConversationId]) -> None:
        """Delete the cached state of chats, in memory and on disk."""
        for conversation_id in conversation_ids:
            self._engine.forget(conversation_id)
        self.forgotten.emit(tuple(conversation_ids))
        self.ask()

    def move_to_disk(self, conversation_ids: Sequence[ConversationId]) -> None:
        """Write the cached state of chats to disk, and drop it from memory."""
        asked = self._engine.move_to_disk(tuple(conversation_ids))
        self._bridge.when_answered(asked, partial(self._on_moved, tuple(conversation_ids)))

    def _look_again(self) -> None:
        if self._is_old and self._is_shown:
            self._is_old = False
            self._wait.start()
            self.ask()

    def ask(self) -> None:
        """Ask for a report now, without the wait after the one before."""
        self._bridge.when_answered(self._engine.report_chats(), self._on_reported)

    def _on_event(self, event: ModelEvent | RequestEvent | object) -> None:
        """Look again, but not for each piece of text or of a load."""
        if not isinstance(event, (TextDelta, ModelLoading)):
            self.look()

    def _on_reported(self, report: HeldChats) -> None:
        self.report = report
        self.changed.emit()

    def _on_moved(self, conversation_ids: tuple[ConversationId, ...], report: HeldChats) -> None:
        self._on_reported(report)
        self.moved.emit(conversation_ids)
