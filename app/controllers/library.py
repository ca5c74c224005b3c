"""The list of all conversations, and which of them is on show. Main thread.

The sidebar shows `summaries` and calls the controller to open, create and delete conversations.
Organiser (organising.py) names, pins, archives and files them, and ChatCopies (chat_copies.py)
copies them. The list has a ConversationSummary of every stored conversation. Messages are loaded
when a conversation is opened, and are kept in memory by desk.py. A new conversation is listed and
stored after its first change. A deleted conversation is restored by undo, or from the list of the
recently deleted ones, where it can also be removed for good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QObject, QTimer, Signal

from app.bridge.store_lane import StoreLane
from app.controllers.deleted_chats import DeletedChats, Removal
from app.controllers.desk import Desk
from app.controllers.folders import FoldersController
from app.controllers.new_chats import NewChats
from app.controllers.origin import Origin
from app.controllers.turns import Turns
from app.controllers.undo import UndoList
from app.controllers.unseen import UnseenAnswers
from app.conversation.placement import NO_PLACE, FolderId, Placement
from app.conversation.tree import (
    Conversation,
    ConversationSummary,
    DeletedConversation,
    summary_of,
)
from app.settings import ChatOrder
from app.store.conversations import ConversationStore
from app.viewmodels.sections import sort_chats
from app.words import undo as undo_words, units as words
from engine.problem import Problem
from engine.types import ConversationId

# Undo restores a conversation that was deleted in an earlier run of the app, for this many seconds.
UNDO_KEPT_S = 3600
# Highest number of imported conversations that are listed at once: 20 ms of the main thread.
_PART = 3000


class LibraryController(QObject):
    """The summaries of all conversations, and the id of the one on show."""

    list_changed = Signal()
    current_changed = Signal()  # emitted when another conversation is on show
    selected = Signal(object)  # argument: ConversationId to show at the next start, or None
    # arguments: tuple of ConversationSummary, function that undoes the deletion or None
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
        folders: FoldersController,
        undo: UndoList,
        origin: Origin,
    ) -> None:
        super().__init__()
        self._store = store
        self._desk = desk
        self._turns = turns
        self._undo = undo
        self._origin = origin
        self._summaries: dict[ConversationId, ConversationSummary] = {}
        # All summaries, newest first; None after a change.
        self._sorted: list[ConversationSummary] | None = None
        self._unseen = UnseenAnswers(store, self.failed.emit)
        # True if the conversation on show had an unseen answer when it was opened.
        self.opened_unseen = False
        self._is_window_open = True
        self._new_chats = NewChats(desk, folders, origin)
        self._deleted = DeletedChats(undo)
        # True if files were opened for the conversation on show. start() then keeps that on show.
        self.keeps_current = False
        # The conversation that was selected last. It may still be loading and not yet on show.
        self._wanted: ConversationId | None = None
        self.current = desk.shown = self._new_chats.begin()
        desk.changed.connect(self._on_conversation_changed)
        turns.answered.connect(self._on_answered)
        folders.defaults_changed.connect(self._on_defaults_changed)

    @property
    def summaries(self) -> list[ConversationSummary]:
        """The summaries of the listed conversations that are not archived, newest first."""
        return [one for one in self.all_summaries if not one.placement.archived]

    @property
    def all_summaries(self) -> list[ConversationSummary]:
        """The summaries of all listed conversations, archived ones too, newest first."""
        if self._sorted is None:
            self._sorted = sort_chats(self._summaries.values(), ChatOrder.RECENT)
        return self._sorted

    @property
    def archived(self) -> list[ConversationSummary]:
        """The summaries of the archived conversations, newest first."""
        return [one for one in self.all_summaries if one.placement.archived]

    @property
    def num_listed(self) -> int:
        return len(self._summaries)

    @property
    def recently_deleted(self) -> list[DeletedConversation]:
        """The deleted conversations that can be restored, in any order."""
        return self._deleted.all

    @property
    def unseen(self) -> frozenset[ConversationId]:
        """The listed conversations whose last answer ended while they were not on show."""
        return self._unseen.among(self._summaries)

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
            is_untouched = not self.keeps_current and self._new_chats.is_blank(
                self._desk.get(self.current)
            )
            if last is not None and last in self._summaries and is_untouched:
                self.select(last)

        self._unseen.load()
        self._store.run(lambda store: store.summaries(), on_summaries, self.failed.emit)
        self._store.run(lambda store: store.deleted(), self._on_deleted_loaded, self.failed.emit)

    def load_again(self) -> None:
        """Load the list again, because an import has added or restored conversations."""
        self._store.run(lambda store: store.summaries(), self._on_imported, self.failed.emit)

    @property
    def activities(self) -> dict[ConversationId, str]:
        """The activity texts of the conversations whose answer is running."""
        return {one: self.activity(one) for one in self._turns.answering}

    def activity(self, conversation_id: ConversationId) -> str:
        """Return the decoding speed of a conversation's running answer, as text for the list.

        Return an empty string if no answer is running.
        """
        live = self._turns.live_in(conversation_id)
        if live is None:
            return ""
        return words.NO_RATE if live.tok_s is None else words.tokens_per_second(f"{live.tok_s:.0f}")

    def summary(self, conversation_id: ConversationId) -> ConversationSummary:
        """Return the summary of a listed conversation."""
        return self._summaries[conversation_id]

    @property
    def new_chat_folder(self) -> FolderId | None:
        """The folder of the conversation on show, if that is new and not listed yet."""
        return self._new_chats.place(self.current).folder_id

    @property
    def folder_of_current(self) -> FolderId | None:
        """The folder of the conversation on show, also if that is not listed yet."""
        return self.placement(self.current).folder_id

    def placement(self, conversation_id: ConversationId) -> Placement:
        """Return the place of a conversation, also if that is not listed yet."""
        listed = self._summaries.get(conversation_id)
        if listed is None:
            return self._new_chats.place(conversation_id)
        return listed.placement

    def new_chat(self, folder_id: FolderId | None = None) -> None:
        """Show a new conversation, unless the one on show is new, unchanged and in the same folder."""
        is_blank = self._new_chats.is_blank(self._desk.get(self.current))
        if not is_blank or folder_id != self.new_chat_folder:
            self._show(self._new_chats.begin(folder_id))

    def place(self, placements: Mapping[ConversationId, Placement]) -> None:
        """Change the places of conversations in the list: pin, archive, put into a folder."""
        for conversation_id, placement in placements.items():
            if conversation_id in self._summaries:
                summary = self._summaries[conversation_id]
                self._put(replace(summary, placement=placement))
            elif conversation_id in self._deleted:
                summary = self._deleted.summary(conversation_id)
                self._deleted.update(replace(summary, placement=placement))
        self._store.run(lambda store: store.folders.place(placements), None, self.failed.emit)
        self.list_changed.emit()

    def select(self, conversation_id: ConversationId) -> None:
        """Show a conversation as soon as it is loaded. If it was deleted, restore it first."""
        if conversation_id in self._deleted:
            self.restore(conversation_id)
            return
        self._wanted = conversation_id
        if conversation_id != self.current:
            self._desk.open(conversation_id, self._on_opened, self._on_open_failed)

    def add_beside(self, copied: Conversation, conversation_id: ConversationId) -> None:
        """List and store a new conversation in the folder of the one that it was copied from."""
        original = self._summaries.get(conversation_id)
        if original is not None:
            folder_id = original.placement.folder_id
            self._new_chats.set_place(copied.conversation_id, Placement(folder_id=folder_id))
        self._desk.add(copied)
        self._desk.save(copied)

    def expect(self, conversation_id: ConversationId) -> None:
        """Load a conversation that may be selected next, for example the one under the pointer."""
        self._desk.expect(conversation_id)

    def delete(self, conversation_id: ConversationId) -> None:
        """Delete a conversation and stop its answer; undo restores the conversation."""
        self.delete_all((conversation_id,))

    def delete_all(
        self,
        conversation_ids: Iterable[ConversationId],
        following: ConversationId | None = None,
    ) -> None:
        """Delete conversations and stop their answers; one undo restores all of them.

        If one of them was on show, show `following`, or a new conversation. An undo shows that one
        again, because restore_all() shows the first one.
        """
        shown_first = sorted(conversation_ids, key=lambda one: one != self.current)
        summaries = self._delete(shown_first, following)
        if summaries:
            undo = self._add_undo(tuple(one.conversation_id for one in summaries), following)
            self.deleted.emit(summaries, undo)

    def discard_all(
        self, conversation_ids: Iterable[ConversationId], following: ConversationId
    ) -> None:
        """Delete conversations because the action that made them is undone. Add no undo for this."""
        summaries = self._delete(conversation_ids, following)
        if summaries:
            self.deleted.emit(summaries, None)

    def restore(self, conversation_id: ConversationId) -> None:
        """Restore and show a deleted conversation, unless that has been done already."""
        self.restore_all((conversation_id,))

    def restore_all(self, conversation_ids: Iterable[ConversationId]) -> None:
        """Restore those conversations that are deleted, and show the first one."""
        gone = tuple(one for one in conversation_ids if one in self._deleted)
        if not gone:
            return
        for conversation_id in gone:
            self._put(self._deleted.end(conversation_id))
        self._store.run(lambda store: store.restore_all(gone), None, self.failed.emit)
        self.list_changed.emit()
        self.recently_deleted_changed.emit()
        self.select(gone[0])

    def remove_all(self, conversation_ids: Iterable[ConversationId]) -> None:
        """Remove deleted conversations for good.

        Skip those that have been restored, and those whose answer is still being stopped.
        """
        stopping = self._turns.answering
        gone = [one for one in conversation_ids if one in self._deleted and one not in stopping]
        for conversation_id in gone:
            self._deleted.end(conversation_id)
            self._desk.drop(conversation_id)
            self.removed.emit(conversation_id)
        if gone:
            self._store.run(lambda store: store.mark_removed(gone), None, self.failed.emit)
            self._store.run_aside(Removal(gone).step, None, self.failed.emit)
            self.recently_deleted_changed.emit()

    def set_window_open(self, is_open: bool) -> None:  # noqa: FBT001 (setter)
        """Note that the window was opened or closed. No conversation is on show without it."""
        self._is_window_open = is_open
        if is_open and self.current in self.unseen:
            self._unseen.discard(self.current)
            self.list_changed.emit()

    def note_cut_off(self) -> None:
        """Mark the running answers that are not on show as unseen, because the app ends.

        Call this before the window is hidden: no conversation is on show without it.
        """
        self._unseen.add(one for one in self._turns.writing if not self._is_on_show(one))

    def leave(self, following: ConversationId | None) -> None:
        """Show another conversation: `following`, or a new one. Show a new one while it loads."""
        if following is None or following not in self._desk:
            self._show(self._new_chats.begin())
        if following is not None:
            self.select(following)

    def _delete(
        self, conversation_ids: Iterable[ConversationId], following: ConversationId | None
    ) -> tuple[ConversationSummary, ...]:
        """Delete those conversations that are listed, and return their summaries."""
        listed = tuple(one for one in conversation_ids if one in self._summaries)
        if not listed:
            return ()
        now = self._origin.now()
        summaries = tuple(self._summaries.pop(one) for one in listed)
        self._sorted = None
        # Add the conversations to _deleted before stop(). stop() may change a conversation, and a
        # changed conversation is listed again unless it is in _deleted.
        for summary in summaries:
            self._deleted.add(DeletedConversation(summary=summary, deleted_at=now))
        for conversation_id in listed:
            self._turns.stop(conversation_id)
        self._store.run(lambda store: store.delete_all(listed, now=now), None, self.failed.emit)
        if self.current in listed:
            self.leave(following if following in self._summaries else None)
        elif self._wanted in listed:
            self._wanted = self.current  # do not show the deleted one once it is loaded
        self.list_changed.emit()
        self.recently_deleted_changed.emit()
        return summaries

    def _add_undo(
        self,
        conversation_ids: tuple[ConversationId, ...],
        following: ConversationId | None = None,
    ) -> Callable[[], object]:
        def delete_again() -> None:
            if summaries := self._delete(conversation_ids, following):
                self._deleted.note_undo(conversation_ids, undo)
                self.deleted.emit(summaries, undo)

        undo = self._undo.add(
            undo_words.delete(len(conversation_ids)),
            partial(self.restore_all, conversation_ids),
            redo=delete_again,
        )
        self._deleted.note_undo(conversation_ids, undo)
        return undo

    def _on_defaults_changed(self) -> None:
        """Begin the conversation on show again if it is new and unchanged."""
        if self._new_chats.is_blank(self._desk.get(self.current)):
            self._new_chats.begin_again()
            self.list_changed.emit()

    def _unlist(self, conversation: Conversation) -> None:
        """Take an emptied conversation out of the list and the store. It stays in memory."""
        conversation_id, now = conversation.conversation_id, self._origin.now()
        placement = self._summaries.pop(conversation_id).placement
        self._sorted = None
        if conversation_id == self.current:
            self._new_chats.take_back(conversation, placement)

        def remove(store: ConversationStore) -> None:
            store.delete(conversation_id, now=now)
            store.remove(conversation_id)

        self._store.release(conversation_id)
        self._store.run(remove, None, self.failed.emit)

    def _show(self, conversation_id: ConversationId) -> None:
        self._wanted = conversation_id
        self.current = self._desk.shown = conversation_id
        self.opened_unseen = self._unseen.discard(conversation_id)
        self._remember_current()
        self.current_changed.emit()
        self.list_changed.emit()

    def _remember_current(self) -> None:
        self.selected.emit(self.current if self.current in self._summaries else None)

    def _on_summaries(self, summaries: tuple[ConversationSummary, ...]) -> None:
        """Add the stored summaries to the list.

        Skip conversations that the user has opened or deleted while the summaries were loading.
        """
        for summary in summaries:
            conversation_id = summary.conversation_id
            is_known = conversation_id in self._desk or conversation_id in self._deleted
            # An equal summary stays: the list makes a new row for each other object.
            if not is_known and self._summaries.get(conversation_id) != summary:
                self._put(summary)
        self.list_changed.emit()

    def _on_imported(self, summaries: tuple[ConversationSummary, ...]) -> None:
        for summary in summaries:
            if summary.conversation_id in self._deleted:
                self._deleted.end(summary.conversation_id)
                self._put(summary)
        self._list_part(summaries)
        self.recently_deleted_changed.emit()

    def _list_part(self, summaries: tuple[ConversationSummary, ...]) -> None:
        """List the first of many imported conversations, and the others between later events."""
        self._on_summaries(summaries[:_PART])
        if len(summaries) > _PART:
            QTimer.singleShot(0, self, partial(self._list_part, summaries[_PART:]))

    def _on_deleted_loaded(self, stored: tuple[DeletedConversation, ...]) -> None:
        """List the deleted conversations. Undo restores those that were deleted a short time ago."""
        now = self._origin.now()
        for one in reversed(stored):
            conversation_id = one.summary.conversation_id
            if conversation_id in self._deleted or conversation_id in self._desk:
                continue
            self._deleted.add(one)
            if now - one.deleted_at < UNDO_KEPT_S:
                self._add_undo((conversation_id,))
        self.recently_deleted_changed.emit()

    def _on_opened(self, conversation: Conversation) -> None:
        if conversation.conversation_id == self._wanted:
            self._show(conversation.conversation_id)

    def _on_open_failed(self, problem: Problem) -> None:
        self._wanted = self.current
        self.list_changed.emit()
        self.failed.emit(problem)

    def _on_conversation_changed(self, conversation_id: ConversationId) -> None:
        conversation = self._desk.get(conversation_id)
        if conversation_id in self._deleted:
            # The pane saves its draft after the deletion, and a draft can change the title.
            place = self._deleted.summary(conversation_id).placement
            self._deleted.update(summary_of(conversation, place))
            self.recently_deleted_changed.emit()
            return
        if self._new_chats.is_emptied(conversation, self._summaries.get(conversation_id)):
            self._unlist(conversation)
        else:
            self._list(conversation)
        self._remember_current()
        self.list_changed.emit()

    def _put(self, summary: ConversationSummary) -> None:
        self._summaries[summary.conversation_id] = summary
        self._sorted = None

    def _list(self, conversation: Conversation) -> None:
        """Update the summary of a conversation.

        A message that is sent in the conversation on show takes it out of the archive. A message that
        was queued may be sent after its conversation was archived, and leaves it there.
        """
        conversation_id = conversation.conversation_id
        known = self._summaries.get(conversation_id)
        before = NO_PLACE if known is None else known.placement
        place = self._new_chats.take_place(conversation_id, before)
        is_continued = known is not None and conversation.updated_at > known.updated_at
        if is_continued and conversation_id == self.current:
            place = replace(place, archived=False)
        self._put(summary_of(conversation, place))
        if place != before:
            places = {conversation_id: place}
            self._store.run(lambda store: store.folders.place(places), None, self.failed.emit)

    def _on_answered(self, conversation_id: ConversationId) -> None:
        if not self._is_on_show(conversation_id) and conversation_id in self._summaries:
            self._unseen.add((conversation_id,))
            self.list_changed.emit()
            self.finished_unseen.emit(self._summaries[conversation_id])

    def _is_on_show(self, conversation_id: ConversationId) -> bool:
        return conversation_id == self.current and self._is_window_open
