"""The size of the next prompt of the conversation on show, counted by the engine. Main thread.

Two captions of the composer need the size: that a draft is too long for the model, and that a newly
chosen model has to read the chat. The engine counts again whenever the size may have changed: COUNT_MS
after another conversation is shown, after a change of its messages, draft or model, after its answer,
and after idle work, which may have read the prompt ahead.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal

from app.bridge.engine_bridge import EngineBridge, IdleEvent
from app.controllers.chat import ChatController
from app.controllers.desk import Desk
from app.controllers.library import LibraryController
from app.controllers.models import ModelsController
from app.controllers.requests import has_long_draft, next_turn
from app.controllers.turns import Turns
from app.viewmodels.notes import is_from_other_model
from engine.events import IdleWorking, TokensCounted
from engine.types import ConversationId

# Delay before the engine counts. It is longer than read_ahead.STAY_MS, so that the read-ahead of a
# conversation has begun by then, and its size is counted after it.
COUNT_MS = 600


class PromptSizes(QObject):
    """The size of the next prompt, if it is known and a caption needs it."""

    changed = Signal()

    def __init__(
        self,
        bridge: EngineBridge,
        desk: Desk,
        turns: Turns,
        models: ModelsController,
        library: LibraryController,
        chat: ChatController,
    ) -> None:
        super().__init__()
        self._engine = bridge.engine
        self._desk = desk
        self._turns = turns
        self._models = models
        self._library = library
        self._is_reading = False  # True while idle work reads the conversation on show
        self._is_over = False  # True once the app is closing
        # None before the engine has counted, and while the prompt is being read ahead
        self.size: TokensCounted | None = None
        self._delay = QTimer(self, singleShot=True, interval=COUNT_MS)
        self._delay.timeout.connect(self._count)
        bridge.tokens_counted.connect(self._on_counted)
        bridge.idle_changed.connect(self._on_idle_changed)
        library.current_changed.connect(self._on_changed)
        models.status_changed.connect(self._on_changed)
        chat.draft_saved.connect(self._on_conversation_changed)
        chat.next_turn_changed.connect(self._on_conversation_changed)
        turns.activity_changed.connect(self._on_conversation_changed)

    def stop(self) -> None:
        """Count no more, because the app is closing. Later changes then have no effect."""
        self._is_over = True
        self._delay.stop()

    def _on_conversation_changed(self, conversation_id: ConversationId) -> None:
        if conversation_id == self._library.current:
            self._on_changed()

    def _on_changed(self) -> None:
        """Drop the size, which may be wrong now, and count again after the delay."""
        self._set(None)
        self._wait()

    def _on_idle_changed(self, event: IdleEvent) -> None:
        is_working = isinstance(event, IdleWorking)
        self._is_reading = is_working and event.conversation_id == self._library.current
        if self._is_reading:
            self._set(None)
        elif not is_working:
            self._wait()

    def _wait(self) -> None:
        if not self._is_over:
            self._delay.start()

    def _count(self) -> None:
        current, facts = self._library.current, self._models.status.facts
        if facts is None or self._is_reading or self._turns.live_in(current) is not None:
            return
        conversation = self._desk.get(current)
        if not has_long_draft(conversation) and not is_from_other_model(conversation, facts.path):
            return
        turn = next_turn(conversation, facts)
        if turn.messages:
            self._engine.count_tokens(
                turn.conversation_id,
                turn.messages,
                is_draft=turn.is_draft,
                thinking=turn.thinking,
                keep_thinking=turn.keep_thinking,
            )

    def _on_counted(self, counted: TokensCounted) -> None:
        # A running delay means that something has changed since the command was sent.
        if counted.conversation_id == self._library.current and not self._delay.isActive():
            self._set(counted)

    def _set(self, size: TokensCounted | None) -> None:
        if size != self.size:
            self.size = size
            self.changed.emit()
