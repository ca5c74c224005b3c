"""The conversations that are in memory, and their way to the store. Main thread.

A value may run ahead of the store: a turn that the engine has not accepted yet is shown, but only
its text is saved, as a draft; so is a message that waits for an answer to end. A save that failed is
tried again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from PySide6.QtCore import QObject, QTimer, Signal

from app.bridge.store_lane import StoreLane
from app.conversation.tree import Conversation, set_draft
from engine.types import ConversationId, Problem

KEPT = 5  # conversations kept in memory beside those with a running turn
RETRY_MS = 5000


@dataclass(frozen=True, slots=True)
class _UnacceptedTurn:
    """A turn that is not accepted: the value without it, and what the person typed for it."""

    before: Conversation
    text: str


class _Waiter(NamedTuple):
    """Somebody for whom a conversation is read."""

    on_ready: Callable[[Conversation], None]
    on_error: Callable[[Problem], None]


class Desk(QObject):
    """Open conversations by id, least recently used first."""

    changed = Signal(object)  # ConversationId: the messages or the title may differ
    failed = Signal(object)  # Problem

    def __init__(self, store: StoreLane, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._open: dict[ConversationId, Conversation] = {}
        self._held: dict[ConversationId, _UnacceptedTurn] = {}
        self._queued: dict[ConversationId, str] = {}
        self._reading: dict[ConversationId, list[_Waiter]] = {}
        self.shown: ConversationId | None = None  # stays in memory, too
        self._expected: ConversationId | None = None  # and this
        self._pinned: set[ConversationId] = set()
        self._unsaved: set[ConversationId] = set()
        self._retry = QTimer(self, singleShot=True, interval=RETRY_MS)
        self._retry.timeout.connect(self.save_again)

    def __contains__(self, conversation_id: object) -> bool:
        return conversation_id in self._open

    def get(self, conversation_id: ConversationId) -> Conversation:
        return self._open[conversation_id]

    def add(self, conversation: Conversation) -> None:
        """Lay a conversation on the desk; the first put saves it."""
        self._open.pop(conversation.conversation_id, None)
        self._open[conversation.conversation_id] = conversation
        self._trim()

    def open(
        self,
        conversation_id: ConversationId,
        on_ready: Callable[[Conversation], None],
        on_error: Callable[[Problem], None],
    ) -> None:
        """Call on_ready with the value: at once if it is here, else when the store has read it."""
        if conversation_id in self._open:
            self.add(self._open[conversation_id])
            on_ready(self._open[conversation_id])
        else:
            self._read(conversation_id).append(_Waiter(on_ready, on_error))

    def expect(self, conversation_id: ConversationId) -> None:
        """Read a conversation that may be opened next. It takes nobody's place: the next one has its own."""
        self._expected = conversation_id
        if conversation_id not in self._open:
            self._read(conversation_id)

    def save(self, conversation: Conversation) -> None:
        """Replace the value and save it."""
        self._open[conversation.conversation_id] = conversation
        self._save(conversation.conversation_id)
        self.changed.emit(conversation.conversation_id)

    def save_draft(self, conversation_id: ConversationId, draft: str) -> None:
        """Replace the draft; only its first and last words make a difference to the lists."""
        before = self._open[conversation_id]
        if draft == before.draft:
            return  # one that is empty would be kept for nothing
        self._open[conversation_id] = set_draft(before, draft)
        self._save(conversation_id)
        if bool(before.draft) != bool(draft):
            self.changed.emit(conversation_id)

    def hold(self, conversation: Conversation, text: str) -> None:
        """Show a value whose newest turn is not accepted; save the text only."""
        conversation_id = conversation.conversation_id
        self._held[conversation_id] = _UnacceptedTurn(self._open[conversation_id], text)
        self.save(conversation)

    def accept(self, conversation_id: ConversationId) -> None:
        """The held turn is part of the conversation from now on."""
        del self._held[conversation_id]
        self._save(conversation_id)

    def take_back(self, conversation_id: ConversationId) -> None:
        """The held turn never was; its text is in the draft."""
        value = self._without_turn(self._open[conversation_id])
        del self._held[conversation_id]
        self.save(value)

    def queue(self, conversation_id: ConversationId, text: str) -> None:
        """Keep a message that is to be sent later, behind what waits there already; it is no draft now."""
        self._open[conversation_id] = set_draft(self._open[conversation_id], "")
        self._queued[conversation_id] = join_texts(self.queued(conversation_id), text)
        self._save(conversation_id)

    def queued(self, conversation_id: ConversationId) -> str:
        """What waits to be sent; empty if nothing does."""
        return self._queued.get(conversation_id, "")

    def take_queued(self, conversation_id: ConversationId) -> str:
        """What waited is the caller's now; it is saved no longer."""
        return self._queued.pop(conversation_id, "")

    def pin(self, conversation_id: ConversationId) -> None:
        self._pinned.add(conversation_id)

    def unpin(self, conversation_id: ConversationId) -> None:
        self._pinned.discard(conversation_id)
        self._trim()

    def save_again(self) -> None:
        """Try what could not be saved once more."""
        self._retry.stop()
        unsaved, self._unsaved = self._unsaved, set()
        for conversation_id in unsaved:
            self._save(conversation_id)

    def close(self) -> None:
        """Try a last time to save what could not be saved."""
        self.save_again()

    def _save(self, conversation_id: ConversationId) -> None:
        value = self._open[conversation_id]
        if queued := self.queued(conversation_id):
            value = replace(value, draft=join_texts(queued, value.draft))
        self._store.save(
            self._without_turn(value),
            lambda problem: self._on_save_failed(conversation_id, problem),
        )

    def _without_turn(self, value: Conversation) -> Conversation:
        held = self._held.get(value.conversation_id)
        if held is None:
            return value
        return replace(
            held.before,
            title=value.title if value.title_is_manual else held.before.title,
            title_is_manual=value.title_is_manual,
            system_prompt=value.system_prompt,
            setup=value.setup,
            keep_ready=value.keep_ready,
            draft=join_texts(held.text, value.draft),
        )

    def _read(self, conversation_id: ConversationId) -> list[_Waiter]:
        """Have it read, once, and return who waits for that."""
        if conversation_id not in self._reading:
            self._reading[conversation_id] = []
            self._store.load(
                conversation_id,
                self._on_loaded,
                lambda problem: self._on_unreadable(conversation_id, problem),
            )
        return self._reading[conversation_id]

    def _trim(self) -> None:
        kept = {*self._pinned, *self._unsaved, *self._queued, self.shown, self._expected}
        spare = [conversation_id for conversation_id in self._open if conversation_id not in kept]
        for conversation_id in spare[:-KEPT]:
            del self._open[conversation_id]
            self._store.release(conversation_id)

    def _on_loaded(self, loaded: Conversation) -> None:
        waiting = self._reading.pop(loaded.conversation_id)
        self._open = {loaded.conversation_id: loaded, **self._open}
        for waiter in waiting:
            self.open(loaded.conversation_id, waiter.on_ready, waiter.on_error)
        self._trim()

    def _on_unreadable(self, conversation_id: ConversationId, problem: Problem) -> None:
        for waiter in self._reading.pop(conversation_id):
            waiter.on_error(problem)

    def _on_save_failed(self, conversation_id: ConversationId, problem: Problem) -> None:
        self._unsaved.add(conversation_id)
        self._retry.start()
        self.failed.emit(problem)


def join_texts(earlier: str, later: str) -> str:
    """Two pieces for one composer, with a blank line between them."""
    return "\n\n".join(text for text in (earlier, later) if text.strip())
