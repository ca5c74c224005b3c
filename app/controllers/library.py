"""The list of all conversations, and which of them is on show. Main thread.

The sidebar shows `summaries` and calls the controller to open, create, rename, pin and delete
conversations. The list has a ConversationSummary of every stored conversation. Messages are loaded
when a conversation is opened, and are kept in memory by desk.py. A new conversation is listed and
stored after its first change. A deleted conversation is restored by undo, or from the list of the
recently deleted ones, where it can also be removed for good.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QObject, Signal

from app.bridge.store_lane import StoreLane
from app.controllers.desk import Desk
from app.controllers.origin import Origin
from app.controllers.presets import PresetsController
from app.controllers.turns import Turns
from app.controllers.undo import UndoList
from app.conversation.branching import fork
from app.conversation.tree import (
    Conversation,
    ConversationSummary,
    DeletedConversation,
    NodeId,
    new_conversation,
    set_title,
    summary_of,
)
from app.words import units as words
from engine.types import ConversationId, Problem

# Undo restores a conversation that was deleted in an earlier run of the app, for this many seconds.
UNDO_KEPT_S = 3600


class LibraryController(QObject):
    """The summaries of all conversations, and the id of the one on show."""

    list_changed = Signal()
    current_changed = Signal()  # emitted when another conversation is on show
    selected = Signal(object)  # argument: ConversationId to show at the next start, or None
    # arguments: ConversationSummary, function that undoes the deletion
    deleted = Signal(object, object)
    recently_deleted_changed = Signal()
    removed = Signal(object)  # argument: ConversationId of a conversation that was removed for good
    # argument: ConversationSummary; its answer ended out of sight
    finished_unseen = Signal(object)
    failed = Signal(object)  # argument: a Problem

    def __init__(
        self,
        store: StoreLane,
        desk: Desk,
        turns: Turns,
        presets: PresetsController,
        undo: UndoList,
        origin: Origin,
    ) -> None:
        super().__init__()
        self._store = store
        self._desk = desk
        self._turns = turns
        self._presets = presets
        self._undo = undo
        self._origin = origin
        self._summaries: dict[ConversationId, ConversationSummary] = {}
        self._unseen: set[ConversationId] = set()
        # The deleted conversations that can be restored.
        self._deleted: dict[ConversationId, DeletedConversation] = {}
        # The functions in the undo list that restore them, if there are any.
        self._undos: dict[ConversationId, Callable[[], object]] = {}
        # The conversation that was selected last. It may still be loading and not yet on show.
        self._wanted: ConversationId | None = None
        self.current = desk.shown = self._lay_out_new()
        desk.changed.connect(self._on_conversation_changed)
        turns.answered.connect(self._on_answered)
        presets.changed.connect(self._on_presets_changed)

    @property
    def summaries(self) -> list[ConversationSummary]:
        """The summaries of all listed conversations, newest first."""
        return sorted(self._summaries.values(), key=lambda one: -one.updated_at)

    @property
    def num_listed(self) -> int:
        return len(self._summaries)

    @property
    def recently_deleted(self) -> list[DeletedConversation]:
        """The deleted conversations that can be restored, the newest deletion first."""
        return sorted(self._deleted.values(), key=lambda one: -one.deleted_at)

    @property
    def unseen(self) -> frozenset[ConversationId]:
        """The conversations whose last answer ended while another conversation was on show."""
        return frozenset(self._unseen)

    @property
    def kept_ready(self) -> frozenset[ConversationId]:
        """The pinned conversations. The engine evicts their cached state last."""
        return frozenset(one.conversation_id for one in self._summaries.values() if one.keep_ready)

    def is_listed(self, conversation_id: ConversationId) -> bool:
        """Return True if a conversation is in the list.

        A new conversation is listed after its first change.
        """
        return conversation_id in self._summaries

    def start(self, last: ConversationId | None) -> None:
        """Load the list, then show `last`: the conversation that was shown when the app ended."""

        def on_summaries(summaries: tuple[ConversationSummary, ...]) -> None:
            self._on_summaries(summaries)
            is_untouched = self._is_blank(self._desk.get(self.current))
            if last is not None and last in self._summaries and is_untouched:
                self.select(last)

        self._store.run(lambda store: store.summaries(), on_summaries, self.failed.emit)
        self._store.run(lambda store: store.deleted(), self._on_deleted_loaded, self.failed.emit)

    def load_again(self) -> None:
        """Load the list again, because an import has added or restored conversations."""
        self._store.run(lambda store: store.summaries(), self._on_imported, self.failed.emit)

    def activity(self, conversation_id: ConversationId) -> str:
        """Return the decoding speed of a conversation's running answer, as text for the list.

        Return an empty string if no answer is running.
        """
        live = self._turns.live_in(conversation_id)
        if live is None:
            return ""
        return words.NO_RATE if live.tok_s is None else words.tokens_per_second(f"{live.tok_s:.0f}")

    def new_chat(self) -> None:
        """Show a new conversation, unless the one on show is new and unchanged."""
        if not self._is_blank(self._desk.get(self.current)):
            self._show(self._lay_out_new())

    def select(self, conversation_id: ConversationId) -> None:
        """Show a conversation as soon as it is loaded. If it was deleted, restore it first."""
        if conversation_id in self._deleted:
            self.restore(conversation_id)
            return
        self._wanted = conversation_id
        if conversation_id != self.current:
            self._desk.open(conversation_id, self._on_opened, self._on_open_failed)

    def fork(self, conversation_id: ConversationId, node_id: NodeId) -> None:
        """Copy a branch down to a message into a new conversation, and show that conversation.

        The conversation must be in memory, and the message must have ended. See branching.fork().
        """
        forked = fork(
            self._desk.get(conversation_id),
            node_id,
            ConversationId(self._origin.new_id()),
            self._origin.new_id,
            now=self._origin.now(),
        )
        self._desk.add(forked)
        self._desk.save(forked)
        self._show(forked.conversation_id)

    def select_neighbour(self, step: int) -> None:
        """Show the conversation `step` places below the one on show, and wrap around at the ends.

        If the conversation on show is not listed, start above the first one.
        """
        listed = [one.conversation_id for one in self.summaries]
        if not listed:
            return
        is_listed = self.current in self._summaries
        at = listed.index(self.current) if is_listed else min(0, -step)
        self.select(listed[(at + step) % len(listed)])

    def expect(self, conversation_id: ConversationId) -> None:
        """Load a conversation that may be selected next, for example the one under the pointer."""
        self._desk.expect(conversation_id)

    def rename(self, conversation_id: ConversationId, title: str) -> None:
        self._change(conversation_id, lambda conversation: set_title(conversation, title))

    def keep_ready(self, conversation_id: ConversationId, keep: bool) -> None:  # noqa: FBT001 (the value)
        """Pin or unpin a conversation. The engine evicts the cached state of a pinned one last."""
        self._change(conversation_id, lambda conversation: replace(conversation, keep_ready=keep))

    def delete(self, conversation_id: ConversationId) -> None:
        """Delete a conversation and stop its answer; undo restores the conversation."""
        summary = self._summaries.pop(conversation_id, None)
        if summary is None:
            return
        # Add the conversation to _deleted before stop(). stop() may change the conversation, and a
        # changed conversation is listed again unless it is in _deleted.
        now = self._origin.now()
        self._deleted[conversation_id] = DeletedConversation(summary=summary, deleted_at=now)
        self._turns.stop(conversation_id)
        self._store.run(
            lambda store: store.delete(conversation_id, now=now), None, self.failed.emit
        )
        self._unseen.discard(conversation_id)
        if conversation_id == self.current:
            self._show(self._lay_out_new())
        self.list_changed.emit()
        self.recently_deleted_changed.emit()
        self.deleted.emit(summary, self._add_undo(conversation_id))

    def restore(self, conversation_id: ConversationId) -> None:
        """Restore and show a deleted conversation, unless that has been done already."""
        deleted = self._deleted.get(conversation_id)
        if deleted is None:
            return
        self._end_deletion(conversation_id)
        self._summaries[conversation_id] = deleted.summary
        self._store.run(lambda store: store.restore(conversation_id), None, self.failed.emit)
        self.list_changed.emit()
        self.recently_deleted_changed.emit()
        self.select(conversation_id)

    def remove(self, conversation_id: ConversationId) -> None:
        """Remove a deleted conversation for good.

        Do nothing if it has been restored, or while its answer is still being stopped.
        """
        is_running = self._turns.live_in(conversation_id) is not None
        if conversation_id not in self._deleted or is_running:
            return
        self._end_deletion(conversation_id)
        self._desk.drop(conversation_id)
        self._store.run(lambda store: store.remove(conversation_id), None, self.failed.emit)
        self.removed.emit(conversation_id)
        self.recently_deleted_changed.emit()

    def _add_undo(self, conversation_id: ConversationId) -> Callable[[], object]:
        undo = self._undo.add(partial(self.restore, conversation_id))
        self._undos[conversation_id] = undo
        return undo

    def _end_deletion(self, conversation_id: ConversationId) -> None:
        """Note that a conversation is not deleted any more: it is restored, or removed for good."""
        del self._deleted[conversation_id]
        undo = self._undos.pop(conversation_id, None)
        if undo is not None:
            self._undo.drop(undo)

    def _lay_out_new(self) -> ConversationId:
        conversation_id = ConversationId(self._origin.new_id())
        conversation = new_conversation(conversation_id, now=self._origin.now())
        self._blank = self._presets.begin_conversation(conversation)
        self._desk.add(self._blank)
        return conversation_id

    def _on_presets_changed(self) -> None:
        """Apply the model's preset to the conversation on show if it is new and unchanged."""
        if self._is_blank(self._desk.get(self.current)):
            self._blank = self._presets.begin_conversation(self._blank)
            self._desk.add(self._blank)
            self.list_changed.emit()

    def _is_blank(self, conversation: Conversation) -> bool:
        """Return True if the conversation is new and has not changed since its creation."""
        return conversation == self._blank

    def _show(self, conversation_id: ConversationId) -> None:
        self._wanted = conversation_id
        self.current = self._desk.shown = conversation_id
        self._unseen.discard(conversation_id)
        self._remember_current()
        self.current_changed.emit()
        self.list_changed.emit()

    def _remember_current(self) -> None:
        self.selected.emit(self.current if self.current in self._summaries else None)

    def _change(
        self, conversation_id: ConversationId, change: Callable[[Conversation], Conversation]
    ) -> None:
        """Load a conversation if necessary, change it and save it."""
        self._desk.open(
            conversation_id,
            lambda conversation: self._desk.save(change(conversation)),
            self.failed.emit,
        )

    def _on_summaries(self, summaries: tuple[ConversationSummary, ...]) -> None:
        """Add the stored summaries to the list.

        Skip conversations that the user has opened or deleted while the summaries were loading.
        """
        for summary in summaries:
            conversation_id = summary.conversation_id
            if conversation_id not in self._desk and conversation_id not in self._deleted:
                self._summaries[conversation_id] = summary
        self.list_changed.emit()

    def _on_imported(self, summaries: tuple[ConversationSummary, ...]) -> None:
        for summary in summaries:
            if summary.conversation_id in self._deleted:
                self._end_deletion(summary.conversation_id)
                self._summaries[summary.conversation_id] = summary
        self._on_summaries(summaries)
        self.recently_deleted_changed.emit()

    def _on_deleted_loaded(self, stored: tuple[DeletedConversation, ...]) -> None:
        """List the deleted conversations. Undo restores those that were deleted a short time ago."""
        now = self._origin.now()
        for one in reversed(stored):
            conversation_id = one.summary.conversation_id
            if conversation_id in self._deleted or conversation_id in self._desk:
                continue
            self._deleted[conversation_id] = one
            if now - one.deleted_at < UNDO_KEPT_S:
                self._add_undo(conversation_id)
        self.recently_deleted_changed.emit()

    def _on_opened(self, conversation: Conversation) -> None:
        if conversation.conversation_id == self._wanted:
            self._show(conversation.conversation_id)

    def _on_open_failed(self, problem: Problem) -> None:
        self._wanted = self.current
        self.list_changed.emit()
        self.failed.emit(problem)

    def _on_conversation_changed(self, conversation_id: ConversationId) -> None:
        if conversation_id not in self._deleted:
            self._summaries[conversation_id] = summary_of(self._desk.get(conversation_id))
            self._remember_current()
            self.list_changed.emit()

    def _on_answered(self, conversation_id: ConversationId) -> None:
        if conversation_id != self.current and conversation_id in self._summaries:
            self._unseen.add(conversation_id)
            self.list_changed.emit()
            self.finished_unseen.emit(self._summaries[conversation_id])
