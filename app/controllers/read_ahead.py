"""Read-ahead: sends the known beginning of the next prompt to the engine. Main thread.

Reading a prompt ahead makes the answer start sooner. When the user opens a conversation, changes
its messages or options, or types a long draft, the controller sends the known beginning of the next
prompt. The engine feeds it while idle. After a turn the engine reads ahead by itself. The
controller also tells the engine which conversation is on show and which ones are pinned. The engine
evicts the cached state of these conversations last. The controller listens to the signals of the
other controllers. Its only public method is stop().
"""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer

from app.bridge.engine_bridge import EngineBridge
from app.controllers.chat import ChatController
from app.controllers.desk import Desk
from app.controllers.library import LibraryController
from app.controllers.models import ModelsController
from app.controllers.requests import NextTurn, has_long_draft, next_turn
from app.controllers.turns import Turns
from app.conversation.tree import ConversationSummary
from engine.types import ConversationId, ModelFacts

# delay before reading ahead, so that a conversation shown only briefly is not read ahead
STAY_MS = 400


class ReadAheadController(QObject):
    """The controller that sends Show, ReadAhead and Pin commands to the engine."""

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
        self._facts: ModelFacts | None = None  # facts of the loaded model
        # content of the last ReadAhead command; None if the engine does not have it any more
        self._sent: NextTurn | None = None
        # True if a turn of its conversation has ended since: the engine may have dropped _sent
        self._is_outdated = False
        # True: send a ReadAhead command when the running turn on show has ended
        self._is_put_off = False
        self._is_over = False  # True once the app is closing
        # conversations that are pinned in the engine
        self._kept_ready: frozenset[ConversationId] = frozenset()
        self._stay = QTimer(self, singleShot=True, interval=STAY_MS)
        self._stay.timeout.connect(self._send_next_turn)
        library.current_changed.connect(self._on_shown)
        library.list_changed.connect(self._send_pins)
        library.deleted.connect(self._on_deleted)
        models.status_changed.connect(self._on_status_changed)
        turns.activity_changed.connect(self._on_activity_changed)
        chat.next_turn_changed.connect(self._on_next_turn_changed)
        chat.draft_saved.connect(self._on_draft_saved)
        self._on_shown()

    def stop(self) -> None:
        """Stop sending ReadAhead commands, because the app is closing. Idempotent."""
        self._is_over = True
        self._stay.stop()

    def _on_shown(self) -> None:
        self._engine.show(self._library.current)
        self._wait()

    def _on_status_changed(self) -> None:
        facts = self._models.status.facts
        if facts is self._facts:
            return
        self._facts = facts
        # a newly loaded model has read nothing ahead, so the command must be sent again
        if facts is not None:
            self._sent = None
            self._wait()

    def _on_deleted(self, summary: ConversationSummary, _undo: object) -> None:
        if self._facts is None or self._is_over:
            return
        self._engine.read_ahead(summary.conversation_id, ())
        if self._has_sent_for(summary.conversation_id):
            self._sent = None  # if undo restores the conversation, the command is sent again

    def _on_next_turn_changed(self, conversation_id: ConversationId) -> None:
        if conversation_id == self._library.current:
            self._wait()

    def _on_draft_saved(self, conversation_id: ConversationId) -> None:
        """Let the engine read a long draft ahead, without the delay STAY_MS.

        A draft is saved only after a pause in typing, so no other delay is needed.
        """
        if conversation_id == self._library.current:
            was_draft = self._sent is not None and self._sent.is_draft
            if was_draft or has_long_draft(self._desk.get(conversation_id)):
                self._send_next_turn()

    def _on_activity_changed(self, conversation_id: ConversationId) -> None:
        """Send the beginning of the next prompt after a turn, if necessary.

        The engine reads ahead by itself after a turn, and drops the ReadAhead command that was sent
        before the turn. A new command is necessary if a command was put off during the turn. It is
        also necessary if the draft is long, because the engine does not know the draft.
        """
        if self._turns.live_in(conversation_id) is not None:
            return
        self._is_outdated |= self._has_sent_for(conversation_id)
        if conversation_id != self._library.current:
            return
        if self._is_put_off or has_long_draft(self._desk.get(conversation_id)):
            self._send_next_turn()

    def _wait(self) -> None:
        if not self._is_over:
            self._stay.start()

    def _send_next_turn(self) -> None:
        self._stay.stop()
        current = self._library.current
        self._is_put_off = self._turns.live_in(current) is not None
        if self._facts is None or self._is_put_off or self._is_over:
            return
        turn = next_turn(self._desk.get(current), self._facts)
        is_needed = self._is_outdated or turn != self._sent
        if is_needed and (turn.messages or self._has_sent_for(current)):
            self._sent, self._is_outdated = turn, False
            self._engine.read_ahead(
                turn.conversation_id,
                turn.messages,
                is_draft=turn.is_draft,
                thinking=turn.thinking,
                keep_thinking=turn.keep_thinking,
            )

    def _has_sent_for(self, conversation_id: ConversationId) -> bool:
        return self._sent is not None and self._sent.conversation_id == conversation_id

    def _send_pins(self) -> None:
        kept_ready = self._library.kept_ready
        for conversation_id in kept_ready - self._kept_ready:
            self._engine.pin(conversation_id)
        for conversation_id in self._kept_ready - kept_ready:
            self._engine.unpin(conversation_id)
        self._kept_ready = kept_ready
