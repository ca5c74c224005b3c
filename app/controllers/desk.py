"""The conversations in memory, and how they are saved. Main thread.

The desk keeps the current value of every open conversation. The controllers replace this value, and
the transcript shows it. A new turn (a message and its reply) is shown at once, but stored only when
the engine has accepted the turn. Until then, only the text of its user message is saved, as part of
the draft. A queued message is saved as part of the draft too. While the stored draft has such a
text, its field draft_was_sent is True. A save that failed is retried after 5 s.

What the desk knows of a conversation besides its value, and how long:

    collection   holds                                 from             to
    _reading     callbacks of a load                   open, expect     the end of the load
    _pinned      one with a running turn               pin              unpin
    _held        a turn that is not accepted           hold             accept, take_back
    _queued      a message that waits for an answer    queue            take_queued, take_back, drop
    _unsaved     one whose last save failed            a failed save    a save that succeeds, drop
    _cut_off     one whose message was not read        note_quit        accept

A conversation in _held is pinned too. `_trim` drops none that is shown, expected, pinned, queued,
unsaved or has unsent text in the editor of a message.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from PySide6.QtCore import QObject, QTimer, Signal

from app.bridge.store_lane import StoreLane
from app.conversation.attachments import Attachment
from app.conversation.tree import (
    Conversation,
    DraftEdit,
    set_draft,
    set_draft_attachments,
    set_draft_edits,
)
from app.conversation.unsent import NOTHING_UNSENT, Unsent, join_texts, with_unsent
from engine.problem import Problem
from engine.types import ConversationId

# number of recently used conversations kept in memory, besides those that `_trim` must keep
KEPT = 5
RETRY_MS = 5000


@dataclass(frozen=True, slots=True)
class _UnacceptedTurn:
    """A turn that is shown although the engine has not accepted it yet."""

    before: Conversation  # the conversation without the turn
    text: str  # text of the turn's user message; empty if the turn adds none
    files: tuple[Attachment, ...]  # files of that message, if they came from the draft


class _Waiter(NamedTuple):
    """The callbacks of one call of Desk.open, kept until the conversation is loaded."""

    on_ready: Callable[[Conversation], None]
    on_error: Callable[[Problem], None]


class Desk(QObject):
    """The open conversations by id, least recently used first. Loads, saves and closes them."""

    changed = Signal(object)  # argument: ConversationId; its messages or its title may have changed
    # argument: ConversationId that may be opened next; it is in memory now
    expected = Signal(object)
    failed = Signal(object)  # argument: a Problem

    def __init__(self, store: StoreLane, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._open: dict[ConversationId, Conversation] = {}
        self._held: dict[ConversationId, _UnacceptedTurn] = {}
        self._queued: dict[ConversationId, Unsent] = {}
        self._reading: dict[ConversationId, list[_Waiter]] = {}
        # Adds the values of a conversation that are not its own, such as the documents of its
        # folder. The library sets it.
        self.derive: Callable[[Conversation], Conversation] = _unchanged
        self.shown: ConversationId | None = None  # conversation on show; stays in memory
        # conversation that may be opened next; stays in memory
        self._expected: ConversationId | None = None
        self._pinned: set[ConversationId] = set()  # conversations with a running turn
        self._unsaved: set[ConversationId] = set()  # conversations whose last save failed
        # conversations with a message that no model read before the app quit
        self._cut_off: set[ConversationId] = set()
        self._retry = QTimer(self, singleShot=True, interval=RETRY_MS)
        self._retry.timeout.connect(self.save_again)

    def __contains__(self, conversation_id: object) -> bool:
        return conversation_id in self._open

    @property
    def ids(self) -> frozenset[ConversationId]:
        """The open conversations."""
        return frozenset(self._open)

    def get(self, conversation_id: ConversationId) -> Conversation:
        return self._open[conversation_id]

    def add(self, conversation: Conversation) -> None:
        """Keep a conversation in memory, as the most recently used one. Do not save it."""
        self._open.pop(conversation.conversation_id, None)
        self._open[conversation.conversation_id] = self.derive(conversation)
        self._trim()

    def open(
        self,
        conversation_id: ConversationId,
        on_ready: Callable[[Conversation], None],
        on_error: Callable[[Problem], None],
    ) -> None:
        """Call on_ready with the conversation: at once if it is in memory, else after loading."""
        if conversation_id in self._open:
            self.add(self._open[conversation_id])
            on_ready(self._open[conversation_id])
        else:
            self._read(conversation_id).append(_Waiter(on_ready, on_error))

    def expect(self, conversation_id: ConversationId) -> None:
        """Load a conversation that may be opened next. Keep it in memory until the next such call.

        The conversation does not count towards KEPT, so no other conversation is dropped for it.
        """
        self._expected = conversation_id
        if conversation_id not in self._open:
            self._read(conversation_id)
        else:
            self.expected.emit(conversation_id)

    def load_again(self, conversation_id: ConversationId) -> None:
        """Load an open conversation again, because an import has added messages to it.

        A conversation that changes meanwhile, or has a running turn, keeps its value in memory. Its
        new messages are there after it has been closed.
        """
        before = self._open.get(conversation_id)
        if before is None or conversation_id in self._pinned | self._unsaved:
            return

        def on_loaded(loaded: Conversation) -> None:
            if self._open.get(conversation_id) is before and conversation_id not in self._pinned:
                self._open[conversation_id] = self.derive(loaded)
                self.changed.emit(conversation_id)

        self._store.load(conversation_id, on_loaded, self.failed.emit)

    def save(self, conversation: Conversation) -> None:
        """Replace the value of an open conversation, and write it to the store."""
        self._open[conversation.conversation_id] = self.derive(conversation)
        self._save(conversation.conversation_id)
        self.changed.emit(conversation.conversation_id)

    def derive_again(self) -> frozenset[ConversationId]:
        """Derive the values of all open conversations again. Return those that have changed.

        Nothing is saved, because derived values are not stored.
        """
        before = dict(self._open)
        self._open = {key: self.derive(value) for key, value in before.items()}
        return frozenset(key for key in before if self._open[key] is not before[key])

    def save_draft(self, conversation_id: ConversationId, draft: str) -> None:
        """Replace the draft and save it.

        Emit `changed` if the draft becomes empty or non-empty, or if it changes the title.
        """
        before = self._open[conversation_id]
        if draft == before.draft:
            # Do not save an unchanged draft. Otherwise a new, empty conversation would be stored.
            return
        after = self._open[conversation_id] = set_draft(before, draft)
        self._save(conversation_id)
        if bool(before.draft) != bool(draft) or before.title != after.title:
            self.changed.emit(conversation_id)

    def save_edits(self, conversation_id: ConversationId, edits: tuple[DraftEdit, ...]) -> None:
        """Replace the changed texts in the editors of messages and save them."""
        before = self._open[conversation_id]
        after = set_draft_edits(before, edits)
        if after.draft_edits != before.draft_edits:
            self._open[conversation_id] = after
            self._save(conversation_id)

    def hold(
        self, conversation: Conversation, text: str, files: tuple[Attachment, ...] = ()
    ) -> None:
        """Show a conversation with a turn that the engine has not accepted yet.

        Until accept() is called, only the turn's `text` and `files` are saved, as part of the
        draft.
        """
        conversation_id = conversation.conversation_id
        self._held[conversation_id] = _UnacceptedTurn(self._open[conversation_id], text, files)
        self.save(conversation)

    def is_held(self, conversation_id: ConversationId) -> bool:
        """Return True from hold() to accept() or take_back()."""
        return conversation_id in self._held

    def accept(self, conversation_id: ConversationId) -> None:
        """Save the turn that hold() showed, because the engine has accepted it. Idempotent."""
        if self._held.pop(conversation_id, None) is None:
            return  # another answer to the same message began before
        if conversation_id not in self._queued:
            self._cut_off.discard(conversation_id)
        self._save(conversation_id)

    def take_back(
        self, conversation_id: ConversationId, *, has_editor: bool = False, has_queued: bool = True
    ) -> Unsent:
        """Remove the turn that hold() showed, and remove and return the queued message.

        Their texts and files are put in front of the draft, in the order in which they were sent.

        Args:
            conversation_id: the conversation of the turn.
            has_editor: True if the text of the turn goes back into the editor of a message instead.
            has_queued: False if the queued message stays queued. The result is empty then.
        """
        if has_editor:
            self._held[conversation_id] = replace(self._held[conversation_id], text="")
        queued = self.take_queued(conversation_id) if has_queued else NOTHING_UNSENT
        value = self._with_held(with_unsent(self._open[conversation_id], queued))
        del self._held[conversation_id]
        self.save(set_draft(value, value.draft))  # a new conversation gets its title from the draft
        return queued

    def queue(self, conversation_id: ConversationId, text: str) -> None:
        """Append a text and the draft's files to the queued message, and clear the draft."""
        before, queued = self._open[conversation_id], self.queued(conversation_id)
        self._queued[conversation_id] = Unsent(
            join_texts(queued.text, text), (*queued.files, *before.draft_attachments)
        )
        self._open[conversation_id] = set_draft_attachments(set_draft(before, ""), ())
        self._save(conversation_id)
        if before.draft_attachments or before.draft_was_sent:
            self.changed.emit(conversation_id)

    def queued(self, conversation_id: ConversationId) -> Unsent:
        """Return the queued message, which is empty if there is none."""
        return self._queued.get(conversation_id, NOTHING_UNSENT)

    def take_queued(self, conversation_id: ConversationId) -> Unsent:
        """Remove the queued message and return it; later saves do not contain it."""
        return self._queued.pop(conversation_id, NOTHING_UNSENT)

    def pin(self, conversation_id: ConversationId) -> None:
        """Keep a conversation in memory until unpin(), as long as it has a running turn.

        The user's own pins are a different thing: see Conversation.keep_ready.
        """
        self._pinned.add(conversation_id)

    def unpin(self, conversation_id: ConversationId) -> None:
        """Allow a conversation to be dropped from memory again, because its turn has ended."""
        self._pinned.discard(conversation_id)
        self._trim()

    def drop(self, conversation_id: ConversationId) -> None:
        """Remove a conversation from memory without saving it: it was deleted for good."""
        self._queued.pop(conversation_id, None)
        self._unsaved.discard(conversation_id)
        if self._open.pop(conversation_id, None) is not None:
            self._store.release(conversation_id)

    def save_again(self) -> None:
        """Save again every conversation whose last save failed."""
        self._retry.stop()
        for conversation_id in self._unsaved:
            self._save(conversation_id)

    def note_quit(self) -> None:
        """Note that the app quits: messages that are taken back from now on were not sent."""
        self._cut_off = {one for one in self._held.keys() | self._queued if self._has_unsent(one)}

    def close(self) -> None:
        """Retry the failed saves once more before the app ends."""
        self.save_again()

    def save_aside(self, conversation: Conversation) -> None:
        """Write a value of an open conversation, and keep the one in memory.

        The next save replaces it. The value lasts if the process is killed before that.
        """
        self._store.save(self._stored(conversation), lambda _none: None, lambda _problem: None)

    def _save(self, conversation_id: ConversationId) -> None:
        self._store.save(
            self._stored(self._open[conversation_id]),
            lambda _none: self._unsaved.discard(conversation_id),
            lambda problem: self._on_save_failed(conversation_id, problem),
        )

    def _has_unsent(self, conversation_id: ConversationId) -> bool:
        """Return True if a conversation has a message that is held or queued."""
        held = self._held.get(conversation_id)
        is_held = held is not None and bool(held.text or held.files)
        return is_held or conversation_id in self._queued

    def _stored(self, value: Conversation) -> Conversation:
        """Return the value to store, with a marked draft if a message was not accepted."""
        conversation_id, value = value.conversation_id, self._with_unaccepted(value)
        if conversation_id not in self._cut_off and not self._has_unsent(conversation_id):
            return value
        return replace(value, draft_was_sent=bool(value.draft or value.draft_attachments))

    def _with_unaccepted(self, value: Conversation) -> Conversation:
        """Return a conversation with the texts and files that were not accepted in its draft."""
        if value.conversation_id in self._queued:
            value = with_unsent(value, self.queued(value.conversation_id))
        return self._with_held(value)

    def _with_held(self, value: Conversation) -> Conversation:
        """Return a conversation without the turn that was not accepted, with its text in the draft.

        The fields that the user can change while the turn waits are those of `value`. A new field
        of Conversation that can change then must be added here.
        """
        held = self._held.get(value.conversation_id)
        if held is None:
            return value
        return replace(
            held.before,
            title=value.title if value.title_is_manual else held.before.title,
            title_is_manual=value.title_is_manual,
            system_prompt=value.system_prompt,
            setup=value.setup,
            chosen_model=value.chosen_model,
            keep_ready=value.keep_ready,
            draft=join_texts(held.text, value.draft),
            draft_attachments=(*held.files, *value.draft_attachments),
            draft_was_sent=value.draft_was_sent,
            draft_edits=value.draft_edits,
        )

    def _read(self, conversation_id: ConversationId) -> list[_Waiter]:
        """Load a conversation, unless it is already loading.

        Return the list of callbacks that run when the conversation is loaded.
        """
        if conversation_id not in self._reading:
            self._reading[conversation_id] = []
            self._store.load(
                conversation_id,
                self._on_loaded,
                lambda problem: self._on_unreadable(conversation_id, problem),
            )
        return self._reading[conversation_id]

    def _trim(self) -> None:
        edited = (key for key, value in self._open.items() if value.draft_edits)
        kept = {*edited, *self._pinned, *self._unsaved, *self._queued, self.shown, self._expected}
        spare = [conversation_id for conversation_id in self._open if conversation_id not in kept]
        for conversation_id in spare[:-KEPT]:
            del self._open[conversation_id]
            self._store.release(conversation_id)

    def _on_loaded(self, loaded: Conversation) -> None:
        waiting = self._reading.pop(loaded.conversation_id)
        self._open = {loaded.conversation_id: self.derive(loaded), **self._open}
        for waiter in waiting:
            self.open(loaded.conversation_id, waiter.on_ready, waiter.on_error)
        self._trim()
        if loaded.conversation_id == self._expected:
            self.expected.emit(loaded.conversation_id)

    def _on_unreadable(self, conversation_id: ConversationId, problem: Problem) -> None:
        for waiter in self._reading.pop(conversation_id):
            waiter.on_error(problem)

    def _on_save_failed(self, conversation_id: ConversationId, problem: Problem) -> None:
        """Report the problem, but not again for each retry. Try again later."""
        if conversation_id not in self._unsaved:
            self.failed.emit(problem)
        # The conversation may have been dropped while its save waited in the queue.
        if conversation_id in self._open:
            self._unsaved.add(conversation_id)
            self._retry.start()


def _unchanged(conversation: Conversation) -> Conversation:
    return conversation
