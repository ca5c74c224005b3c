"""Read-ahead: sends the known beginning of the next prompt to the engine. Main thread.

Reading a prompt ahead makes the answer start sooner: the engine feeds the prompt while it is idle.
The controller listens to the signals of other controllers, and calls four methods of the engine:

    show        when another conversation is on show. The engine works for it first.
    pin         when the user pins or unpins a conversation. The engine evicts the state of pinned
                conversations last. Pins stay in the engine when another model is loaded.
    read_ahead  for the conversation on show: when it has been open for STAY_MS, STAY_MS after a
                change of its messages or options, when a long draft is saved (LONG_DRAFT
                characters or more), and after another model was loaded. With fetch_only for a
                conversation on which the pointer rests for POINTED_MS: only its state on disk is
                read.
    forget      FORGET_MS after the user deleted a conversation, unless it has been restored, and at
                once when the user removes it for good. The engine then frees the memory of the
                conversation's cached state, and in the second case its files too.

A new chat that begins with the documents of its folder and nothing else is read ahead under the id
of the documents (folder_documents.py), so that an empty chat leaves no state of its own.

A conversation that another model answered is not read ahead before the user has chosen a model for
it (chat_models.py).

The engine keeps at most one ReadAhead command per conversation, the newest. A ReadAhead command
without messages withdraws the earlier one. The controller withdraws a command when the conversation
is deleted, and when the user stopped the message before its answer. It also does so when nothing is
left to read ahead, for example when the user deletes a long draft in an empty chat.

`_sent` is the last ReadAhead command. A command that equals `_sent` is not sent. During a turn of
the conversation on show, no ReadAhead command is sent. When a turn ends, the engine reads that
conversation ahead by itself and may drop the ReadAhead command in `_sent`. `_is_outdated` is then
set, so that the next command is sent even if it is equal.

Core creates the controller and calls its only public method, stop(), when the app closes.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer

from app.controllers.chat_models import ChatModels
from app.controllers.chat_services import ChatServices
from app.controllers.folder_documents import FolderDocuments
from app.controllers.requests import (
    has_long_draft,
    is_stopped_early,
    next_turn,
    turn_ahead,
)
from engine.events import ModelFacts
from engine.questions import NextPrompt
from engine.types import ConversationId

# delay before reading ahead, so that a conversation shown only briefly is not read ahead
STAY_MS = 400
# delay before the state of a conversation under the pointer is read from disk
POINTED_MS = 120
# Delay after the deletion of a conversation before its cached state is dropped. Until then, a
# restored conversation needs no new prefill.
FORGET_MS = 60_000


class ReadAheadController(QObject):
    """The controller that calls show, pin, read_ahead and forget of the engine.

    Only read_ahead needs a loaded model.
    """

    def __init__(
        self, services: ChatServices, chat_models: ChatModels, documents: FolderDocuments
    ) -> None:
        super().__init__()
        self._documents = documents
        self._engine = services.bridge.engine
        self._desk = services.desk
        self._turns = services.turns
        self._models = services.models
        self._chat_models = chat_models
        self._library = services.library
        self._facts: ModelFacts | None = None  # facts of the loaded model, if any
        # Content of the last ReadAhead command for any conversation. None before the first command,
        # after a model was loaded, and after the conversation of the command was deleted.
        self._sent: NextPrompt | None = None
        # True if a turn of the conversation of `_sent` has ended since that command was sent. The
        # engine may have dropped the command, so the next one is sent even if it equals `_sent`.
        self._is_outdated = False
        # True if a ReadAhead command must be sent after the running turn of the conversation on
        # show.
        self._is_put_off = False
        self._is_over = False  # True once the app is closing
        self._stay = QTimer(self, singleShot=True, interval=STAY_MS)
        self._stay.timeout.connect(self._send_next_turn)
        self._pointed = QTimer(self, singleShot=True, interval=POINTED_MS)
        self._pointed.timeout.connect(self._fetch_expected)
        self._expected: ConversationId | None = None  # conversation under the pointer
        services.desk.expected.connect(self._on_expected)
        services.library.current_changed.connect(self._on_shown)
        services.library.list_changed.connect(self._send_pins)
        documents.ids_changed.connect(self._send_pins)
        services.library.discarded.connect(self._withdraw)
        services.library.deleted.removed.connect(self._on_removed)
        services.models.status_changed.connect(self._on_status_changed)
        chat_models.stayed.connect(self._wait)
        services.turns.activity_changed.connect(self._on_activity_changed)
        services.chat.next_turn_changed.connect(self._on_next_turn_changed)
        services.chat.draft_saved.connect(self._on_draft_saved)
        self._on_shown()

    def stop(self) -> None:
        """Call read_ahead and forget no more, because the app is closing. Idempotent.

        main.py calls this before it saves the last drafts, and Core.close() calls it again. The
        settings `shown` and `pinned` are still sent: they start no work in the engine.
        """
        self._is_over = True
        self._stay.stop()
        self._pointed.stop()

    def _on_shown(self) -> None:
        # library.current is always the id of a conversation in memory, which may be new and empty.
        self._engine.show(self._library.current)
        self._wait()

    def _on_expected(self, conversation_id: ConversationId) -> None:
        self._expected = conversation_id
        if not self._is_over:
            self._pointed.start()

    def _fetch_expected(self) -> None:
        """Let the engine read the state of the conversation under the pointer from disk."""
        expected = self._expected
        is_shown = expected == self._library.current
        if expected is None or expected not in self._desk or self._facts is None or is_shown:
            return
        # During an answer, the next turn is not known yet.
        is_answering = self._turns.live_in(expected) is not None
        if is_answering or self._chat_models.must_ask(expected):
            return
        turn = next_turn(self._desk.get(expected), self._facts)
        if turn.messages:
            self._engine.read_ahead(turn, fetch_only=True)

    def _on_status_changed(self) -> None:
        facts = self._models.status.facts
        if facts is self._facts:
            return
        self._facts = facts
        # A newly loaded model has read nothing ahead, so the next command must be sent even if it
        # equals the last one.
        if facts is not None:
            self._sent = None
            self._wait()

    def _withdraw(self, conversation_id: ConversationId) -> None:
        """Withdraw the read-ahead of a deleted conversation, even if the engine itself began it.

        After FORGET_MS, let the engine forget the conversation.
        """
        QTimer.singleShot(FORGET_MS, self, lambda: self._forget(conversation_id))
        if self._facts is None or self._is_over:
            return
        nothing = NextPrompt(conversation_id=conversation_id)
        self._engine.read_ahead(nothing)  # no messages: withdraw
        if self._has_sent_for(conversation_id):
            # The next command is then sent even if undo restores the same conversation.
            self._sent = None

    def _forget(self, conversation_id: ConversationId) -> None:
        if not self._is_over and conversation_id not in self._library.listed:
            # The state on disk stays as long as the conversation can be restored.
            self._engine.forget(conversation_id, on_disk=False)

    def _on_removed(self, conversation_id: ConversationId) -> None:
        if not self._is_over:
            self._engine.forget(conversation_id)

    def _on_next_turn_changed(self, conversation_id: ConversationId) -> None:
        if conversation_id == self._library.current:
            self._wait()

    def _on_draft_saved(self, conversation_id: ConversationId) -> None:
        """Let the engine read a long draft ahead, without the delay STAY_MS.

        A draft is saved only after a pause in typing, so no other delay is needed. If the last
        command had a draft, a new command is necessary even if the draft is now short or empty.
        """
        if conversation_id == self._library.current:
            was_draft = self._sent is not None and self._sent.is_draft
            if was_draft or has_long_draft(self._desk.get(conversation_id)):
                self._send_next_turn()

    def _on_activity_changed(self, conversation_id: ConversationId) -> None:
        """Send the beginning of the next prompt after a turn, if necessary.

        The engine reads ahead by itself after a turn. A command is necessary only if one was
        delayed during the turn, or for a long draft, which the engine does not know. If the turn
        was stopped while it waited or read, the command withdraws what was read ahead before it.
        """
        if self._turns.live_in(conversation_id) is not None:
            return
        self._is_outdated |= self._has_sent_for(conversation_id)
        if conversation_id != self._library.current:
            return
        conversation = self._desk.get(conversation_id)
        is_stopped = is_stopped_early(conversation)
        if self._is_put_off or is_stopped or has_long_draft(conversation):
            self._send_next_turn()

    def _wait(self) -> None:
        """Start or restart the delay STAY_MS, after which _send_next_turn is called."""
        if not self._is_over:
            self._stay.start()

    def _send_next_turn(self) -> None:
        """Send a ReadAhead command for the conversation on show, unless the last one was equal.

        During a turn of that conversation, only set `_is_put_off`: the command is sent after the
        turn.
        """
        self._stay.stop()
        current = self._library.current
        self._is_put_off = self._turns.live_in(current) is not None
        if self._facts is None or self._is_put_off or self._is_over:
            return
        if self._chat_models.must_ask(current):
            return
        turn = turn_ahead(self._desk.get(current), self._facts)
        if self._documents.expect(turn):
            turn = NextPrompt(conversation_id=current)
        is_needed = self._is_outdated or turn != self._sent
        # A command without messages withdraws the last one, so it is needed only if the last one
        # was for this conversation.
        if is_needed and (turn.messages or self._has_sent_for(current)):
            self._sent, self._is_outdated = turn, False
            self._engine.read_ahead(turn)

    def _has_sent_for(self, conversation_id: ConversationId) -> bool:
        return self._sent is not None and self._sent.conversation_id == conversation_id

    def _send_pins(self) -> None:
        self._engine.pin(self._library.listed.kept_ready | self._documents.ids)
