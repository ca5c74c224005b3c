"""Actions on one or several listed conversations: rename, pin, archive, file, delete. Main thread.

Every action can be undone. The controller also holds the order of the sidebar, which the keys for
the next and the previous conversation follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QObject, Signal

from app.controllers.deletions import Deletions
from app.controllers.desk import Desk
from app.controllers.folders import FoldersController
from app.controllers.library import LibraryController
from app.controllers.preferences import Preferences
from app.controllers.undo import UndoList
from app.conversation.filed import FiledConversation
from app.conversation.placement import FolderId, Placement
from app.conversation.tree import Conversation, set_title
from app.store.conversations import ConversationSummary
from app.viewmodels.sections import Arrangement, arrange
from app.words import folders as words, undo as undo_words
from engine.types import ConversationId

Ids = Sequence[ConversationId]


class Organiser(QObject):
    """The arrangement of the conversations, and the actions that change it."""

    changed = Signal()  # the conversations, the folders or the order have changed
    # arguments: sentence that says what was done, function that undoes it
    done = Signal(str, object)
    failed = Signal(object)  # argument: a Problem

    def __init__(
        self,
        library: LibraryController,
        deletions: Deletions,
        folders: FoldersController,
        desk: Desk,
        preferences: Preferences,
        undo: UndoList,
    ) -> None:
        super().__init__()
        self._library = library
        self._deletions = deletions
        self._folders = folders
        self._desk = desk
        self._preferences = preferences
        self._undo = undo
        self._order = preferences.value.chat_order
        self._closed = preferences.value.closed_folders
        self._arrangement: Arrangement | None = None  # None: must be computed
        library.list_changed.connect(self._on_changed)
        folders.changed.connect(self._on_changed)
        preferences.changed.connect(self._on_preferences_changed)

    @property
    def arrangement(self) -> Arrangement:
        """The conversations that are not archived, in the groups and the order of the sidebar."""
        if self._arrangement is None:
            self._arrangement = arrange(
                self._library.listed.all, self._folders.folders, self._order
            )
        return self._arrangement

    @property
    def closed_folders(self) -> frozenset[str]:
        return frozenset(self._closed)

    def toggle_folder(self, folder_id: FolderId) -> None:
        """Show or hide the conversations of a folder in the list."""
        known = {folder.folder_id for folder in self._folders.folders}
        closed = {one for one in self._closed if one in known} ^ {folder_id}
        self._preferences.change(closed_folders=tuple(sorted(closed)))

    def select_neighbour(self, step: int) -> None:
        """Show the conversation `step` places below the one on show, and wrap around at the ends.

        If the conversation on show is not in the list, start above the first one.
        """
        listed = [one.conversation_id for one in self.arrangement.in_order]
        if not listed:
            return
        current = self._library.current
        at = listed.index(current) if current in listed else min(0, -step)
        self._library.select(listed[(at + step) % len(listed)])

    def pin(self, conversation_ids: Ids, pinned: bool) -> None:  # noqa: FBT001 (the value)
        """Put conversations at the top of the list, or take them away from there."""
        self._place(
            conversation_ids,
            lambda place: replace(place, pinned=pinned),
            partial(undo_words.pin, pinned=pinned),
        )

    def rename(self, conversation_id: ConversationId, title: str) -> None:
        """Set the title of a conversation. Undo brings the title before back."""

        def change(conversation: Conversation) -> Conversation:
            renamed = set_title(conversation, title)
            if renamed.title != conversation.title and conversation_id in self._library.listed:
                back, again = (
                    partial(replace, title=one.title, title_is_manual=one.title_is_manual)
                    for one in (conversation, renamed)
                )
                self._undo.add(
                    undo_words.RENAME,
                    lambda: self._change_listed(conversation_id, back),
                    conversation_id,
                    redo=lambda: self._change_listed(conversation_id, again),
                )
            return renamed

        self._change(conversation_id, change)

    def keep_ready(self, conversation_id: ConversationId, keep: bool) -> None:  # noqa: FBT001
        """Pin or unpin a conversation. The engine evicts the cached state of a pinned one last."""
        self._change(conversation_id, lambda conversation: replace(conversation, keep_ready=keep))

    def archive(self, conversation_ids: Ids, archived: bool) -> None:  # noqa: FBT001 (the value)
        """Put conversations into the archive, or take them out. They stay searchable."""
        titles, current = self._titles(conversation_ids), self._library.current
        following = self._following(conversation_ids)
        leaves = archived and current in conversation_ids
        undo = self._place(
            conversation_ids,
            lambda place: replace(place, archived=archived),
            partial(undo_words.archive, archived=archived),
            shown=current if leaves else None,
            following=following if leaves else None,
        )
        if undo is None:
            return
        if leaves:
            self._library.leave(following)
        say = words.toast_archived if archived else words.toast_unarchived
        self.done.emit(say(title=titles[0], count=len(titles)), undo)

    def move(self, conversation_ids: Ids, folder_id: FolderId | None) -> None:
        """Put conversations into a folder, or out of all folders. A pinned one loses its pin."""
        titles = self._titles(conversation_ids)
        undo = self._place(
            conversation_ids,
            lambda place: replace(place, pinned=False, folder_id=folder_id),
            undo_words.move,
        )
        if undo is not None:
            folder = self._folders.get(folder_id)
            name = "" if folder is None else folder.name
            text = words.toast_moved(title=titles[0], count=len(titles), folder=name)
            self.done.emit(text, undo)

    def filed(self, conversation: Conversation) -> FiledConversation:
        """Return a conversation with its place in the list and its folder, for an export."""
        placement = self._library.placement(conversation.conversation_id)
        folder = self._folders.get(placement.folder_id)
        return FiledConversation(conversation=conversation, placement=placement, folder=folder)

    def delete(self, conversation_ids: Ids) -> None:
        """Delete conversations. They can be restored for 30 days."""
        self._deletions.delete_all(conversation_ids, self._following(conversation_ids))

    def _change_listed(
        self, conversation_id: ConversationId, change: Callable[[Conversation], Conversation]
    ) -> None:
        """Change a conversation, unless it has been deleted since."""
        if conversation_id in self._library.listed:
            self._change(conversation_id, change)

    def _change(
        self, conversation_id: ConversationId, change: Callable[[Conversation], Conversation]
    ) -> None:
        """Load a conversation if necessary, change it and save it."""
        self._desk.open(
            conversation_id,
            lambda conversation: self._desk.save(change(conversation)),
            self.failed.emit,
        )

    def _titles(self, conversation_ids: Ids) -> list[str]:
        listed = self._library.listed
        return [listed.summary(one).title for one in conversation_ids if one in listed]

    def _following(self, leaving: Ids) -> ConversationId | None:
        """Return the conversation to show when these leave the list: the next one, or the last one.

        Return None if the conversation on show stays, or if none is left to show.
        """
        current = self._library.current
        listed = [one for one in self.arrangement.in_order if self._is_visible(one)]
        ids = [one.conversation_id for one in listed]
        if current not in leaving or current not in ids:
            return None
        at = ids.index(current)
        around = (*ids[at:], *reversed(ids[:at]))
        return next((one for one in around if one not in leaving), None)

    def _is_visible(self, summary: ConversationSummary) -> bool:
        """Return False for a conversation in a closed folder, unless it is on show."""
        is_shown = summary.conversation_id == self._library.current
        return is_shown or summary.placement.folder_id not in self._closed

    def select_first(self, conversation_ids: Ids) -> None:
        """Show the first of some conversations, in the order of the list."""
        wanted = set(conversation_ids)
        ids = (one.conversation_id for one in self.arrangement.in_order)
        self._library.select(next((one for one in ids if one in wanted), conversation_ids[0]))

    def _place(
        self,
        conversation_ids: Ids,
        change: Callable[[Placement], Placement],
        name: Callable[[int], str],
        *,
        shown: ConversationId | None = None,
        following: ConversationId | None = None,
    ) -> Callable[[], object] | None:
        """Change the places of conversations. Return a function that undoes it, or None.

        `name` returns the name of the action for a number of conversations. `shown` is the
        conversation that the undo shows, and `following` the one that a redo shows in its place.
        """
        listed = [one for one in conversation_ids if one in self._library.listed]
        before = {one: self._library.listed.summary(one).placement for one in listed}
        after = {one: change(place) for one, place in before.items()}
        before = {one: place for one, place in before.items() if after[one] != place}
        if not before:
            return None
        changed = {one: after[one] for one in before}
        self._library.place(changed)
        return self._undo.add(
            name(len(before)),
            partial(self._put_back, before, shown),
            redo=lambda: self._put_again(changed, following, leaves=shown is not None),
        )

    def _put_back(
        self, places: Mapping[ConversationId, Placement], shown: ConversationId | None
    ) -> None:
        self._library.place(places)
        if shown is not None:
            self._library.select(shown)

    def _put_again(
        self,
        places: Mapping[ConversationId, Placement],
        following: ConversationId | None,
        *,
        leaves: bool,
    ) -> None:
        self._library.place(places)
        if leaves and self._library.current in places:
            self._library.leave(following)

    def _on_preferences_changed(self) -> None:
        value = self._preferences.value
        if (value.chat_order, value.closed_folders) != (self._order, self._closed):
            self._order, self._closed = value.chat_order, value.closed_folders
            self._on_changed()

    def _on_changed(self) -> None:
        self._arrangement = None
        self.changed.emit()
