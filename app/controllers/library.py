"""The conversation on show, and the list of all conversations. Main thread.

The sidebar shows the `listed` conversations and calls the controller to open and create some.
Callers use these parts directly:

    listed (listed_chats.py)      the summaries of the listed conversations
    deleted (deleted_chats.py)    the deleted conversations, which can be restored
    unseen (unseen.py)            the marks of answers that ended out of sight
    Deletions (deletions.py)      deletes conversations, with undo
    Organiser (organising.py)     names, pins, archives and files them
    ChatCopies (chat_copies.py)   copies them

Messages are loaded when a conversation is opened, and are kept in memory by desk.py. A new
conversation is listed and stored after its first change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QObject, QTimer, Signal

from app.bridge.store_lane import StoreLane
from app.controllers.deleted_chats import DeletedChats
from app.controllers.desk import Desk
from app.controllers.folders import FoldersController
from app.controllers.listed_chats import ListedChats
from app.controllers.new_chats import NewChats
from app.controllers.origin import Origin
from app.controllers.turns import Turns
from app.controllers.undo import UndoList
from app.controllers.unseen import UnseenAnswers
from app.conversation.folder import Folder, with_documents
from app.conversation.placement import NO_PLACE, FolderId, Placement
from app.conversation.tree import Conversation, ConversationSummary, summary_of
from app.store.conversations import ConversationStore
from engine.problem import Problem
from engine.types import ConversationId

# Highest number of imported conversations that are listed at once: 20 ms of the main thread.
_PART = 3000


class LibraryController(QObject):
    """The id of the conversation on show, and the summaries of all conversations."""

    list_changed = Signal()
    current_changed = Signal()  # emitted when another conversation is on show
    selected = Signal(object)  # argument: ConversationId to show at the next start, or None
    # argument: ConversationId of an open conversation that now begins with other documents
    documents_changed = Signal(object)
    discarded = Signal(object)  # argument: ConversationId of a conversation that was deleted
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
        self._folders = folders
        self._origin = origin
        self.listed = ListedChats()
        self.deleted = DeletedChats(store, desk, turns, self.listed, undo, self.failed.emit)
        self.unseen = UnseenAnswers(store, turns, self.listed, self.failed.emit)
        self._new_chats = NewChats(desk, folders, origin)
        # True if files were opened for the conversation on show. start() then shows no other one.
        self.keeps_current = False
        # The conversation that was selected last. It may still be loading and not yet on show.
        self._wanted: ConversationId | None = None
        desk.derive = self._with_documents
        self.current = desk.shown = self._new_chats.begin()
        self.unseen.show(self.current)
        self.unseen.changed.connect(self.list_changed)
        desk.changed.connect(self._on_conversation_changed)
        folders.defaults_changed.connect(self._on_defaults_changed)

    def start(self, last: ConversationId | None) -> None:
        """Load the list, then show `last`: the conversation that was shown when the app ended."""

        def on_summaries(summaries: tuple[ConversationSummary, ...]) -> None:
            self._on_summaries(summaries)
            is_untouched = not self.keeps_current and self._new_chats.is_blank(
                self._desk.get(self.current)
            )
            if last is not None and last in self.listed and is_untouched:
                self.select(last)

        self.unseen.load()
        self._store.run(lambda store: store.summaries(), on_summaries, self.failed.emit)

    def load_again(self) -> None:
        """Load the list again, because an import has added or restored conversations."""
        self._store.run(lambda store: store.summaries(), self._on_imported, self.failed.emit)

    @property
    def folder_of_current(self) -> FolderId | None:
        """The folder of the conversation on show, also if that is not listed yet."""
        return self.placement(self.current).folder_id

    def placement(self, conversation_id: ConversationId) -> Placement:
        """Return the place of a conversation, also if that is not listed yet."""
        summary = self.listed.get(conversation_id)
        if summary is None:
            return self._new_chats.place(conversation_id)
        return summary.placement

    def folder_of(self, conversation_id: ConversationId) -> Folder | None:
        """Return the folder of a conversation, also if that is not listed yet."""
        return self._folders.get(self.placement(conversation_id).folder_id)

    def new_chat(self, folder_id: FolderId | None = None) -> None:
        """Show a new conversation, unless the one on show is new, unchanged and in this folder."""
        is_blank = self._new_chats.is_blank(self._desk.get(self.current))
        if not is_blank or folder_id != self._new_chats.place(self.current).folder_id:
            self._show(self._new_chats.begin(folder_id))

    def place(self, placements: Mapping[ConversationId, Placement]) -> None:
        """Change the places of conversations in the list: pin, archive, put into a folder."""
        for conversation_id, placement in placements.items():
            if conversation_id in self.listed:
                summary = self.listed.summary(conversation_id)
                self.listed.put(replace(summary, placement=placement))
            elif conversation_id in self.deleted:
                summary = self.deleted.summary(conversation_id)
                self.deleted.update(replace(summary, placement=placement))
        self._store.run(lambda store: store.folders.place(placements), None, self.failed.emit)
        self._derive_documents()
        self.list_changed.emit()

    def select(self, conversation_id: ConversationId) -> None:
        """Show a conversation as soon as it is loaded. If it was deleted, restore it first."""
        if conversation_id in self.deleted:
            self.restore_all((conversation_id,))
            return
        self._wanted = conversation_id
        if conversation_id != self.current:
            self._desk.open(conversation_id, self._on_opened, self._on_open_failed)

    def add_beside(self, copied: Conversation, conversation_id: ConversationId) -> None:
        """List and store a new conversation in the folder of the one that it was copied from."""
        original = self.listed.get(conversation_id)
        if original is not None:
            folder_id = original.placement.folder_id
            self._new_chats.set_place(copied.conversation_id, Placement(folder_id=folder_id))
        self._desk.add(copied)
        self._desk.save(copied)

    def expect(self, conversation_id: ConversationId) -> None:
        """Load a conversation that may be selected next, for example the one under the pointer."""
        self._desk.expect(conversation_id)

    def discard_all(
        self, conversation_ids: Iterable[ConversationId], following: ConversationId | None
    ) -> tuple[ConversationSummary, ...]:
        """Delete those conversations that are listed, and return their summaries. Add no undo.

        If one of them was on show, show `following`, or a new conversation.
        """
        summaries = self.deleted.delete(conversation_ids, now=self._origin.now())
        if not summaries:
            return ()
        gone = [one.conversation_id for one in summaries]
        if self.current in gone:
            self.leave(following if following and following in self.listed else None)
        elif self._wanted in gone:
            self._wanted = self.current  # do not show the deleted one once it is loaded
        self.list_changed.emit()
        self.deleted.changed.emit()
        for conversation_id in gone:
            self.discarded.emit(conversation_id)
        return summaries

    def restore_all(self, conversation_ids: Iterable[ConversationId]) -> None:
        """Restore those conversations that are deleted, and show the first one."""
        restored = self.deleted.restore(conversation_ids)
        if restored:
            self.list_changed.emit()
            self.select(restored[0])

    def leave(self, following: ConversationId | None) -> None:
        """Show another conversation: `following`, or a new one. Show a new one while it loads."""
        if following is None or following not in self._desk:
            self._show(self._new_chats.begin())
        if following is not None:
            self.select(following)

    def _on_defaults_changed(self) -> None:
        """Begin the conversation on show again if it is new and unchanged."""
        before = self._desk.get(self.current)
        if self._new_chats.is_blank(before):
            self._new_chats.begin_again()
            self.list_changed.emit()
            if self._desk.get(self.current).documents != before.documents:
                self.documents_changed.emit(self.current)
        self._derive_documents()

    def _with_documents(self, conversation: Conversation) -> Conversation:
        place = self.placement(conversation.conversation_id)
        return with_documents(conversation, self._folders.get(place.folder_id))

    def _derive_documents(self) -> None:
        """Let open conversations without messages follow their folders."""
        for conversation_id in self._desk.derive_again():
            self.documents_changed.emit(conversation_id)

    def _unlist(self, conversation: Conversation) -> None:
        """Take an emptied conversation out of the list and the store. It stays in memory."""
        conversation_id, now = conversation.conversation_id, self._origin.now()
        placement = self.listed.take(conversation_id).placement
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
        self.unseen.show(conversation_id)
        self._remember_current()
        self.current_changed.emit()
        self.list_changed.emit()

    def _remember_current(self) -> None:
        self.selected.emit(self.current if self.current in self.listed else None)

    def _on_summaries(self, summaries: tuple[ConversationSummary, ...]) -> None:
        """Add the stored summaries to the list.

        Skip conversations that the user has opened or deleted while the summaries were loading.
        """
        for summary in summaries:
            conversation_id = summary.conversation_id
            is_known = conversation_id in self._desk or conversation_id in self.deleted
            # Keep an equal summary, because the list makes a new row for every new object.
            if not is_known and self.listed.get(conversation_id) != summary:
                self.listed.put(summary)
        self.list_changed.emit()

    def _on_imported(self, summaries: tuple[ConversationSummary, ...]) -> None:
        self.deleted.note_restored(summaries)
        self._list_part(summaries)

    def _list_part(self, summaries: tuple[ConversationSummary, ...]) -> None:
        """List the first of many imported conversations, and the others between later events."""
        self._on_summaries(summaries[:_PART])
        if len(summaries) > _PART:
            QTimer.singleShot(0, self, partial(self._list_part, summaries[_PART:]))

    def _on_opened(self, conversation: Conversation) -> None:
        if conversation.conversation_id == self._wanted:
            self._show(conversation.conversation_id)

    def _on_open_failed(self, problem: Problem) -> None:
        self._wanted = self.current
        self.list_changed.emit()
        self.failed.emit(problem)

    def _on_conversation_changed(self, conversation_id: ConversationId) -> None:
        conversation = self._desk.get(conversation_id)
        if conversation_id in self.deleted:
            # The pane saves its draft after the deletion, and a draft can change the title.
            place = self.deleted.summary(conversation_id).placement
            self.deleted.update(summary_of(conversation, place))
            self.deleted.changed.emit()
            return
        if self._new_chats.is_emptied(conversation, self.listed.get(conversation_id)):
            self._unlist(conversation)
        else:
            self._list(conversation)
        self._remember_current()
        self.list_changed.emit()

    def _list(self, conversation: Conversation) -> None:
        """Update the summary of a conversation.

        A message that is sent in the conversation on show takes it out of the archive. A message
        that was queued may be sent after its conversation was archived, and leaves it there.
        """
        conversation_id = conversation.conversation_id
        known = self.listed.get(conversation_id)
        before = NO_PLACE if known is None else known.placement
        place = self._new_chats.take_place(conversation_id, before)
        is_continued = known is not None and conversation.updated_at > known.updated_at
        if is_continued and conversation_id == self.current:
            place = replace(place, archived=False)
        self.listed.put(summary_of(conversation, place))
        if place != before:
            places = {conversation_id: place}
            self._store.run(lambda store: store.folders.place(places), None, self.failed.emit)
