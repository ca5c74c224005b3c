"""The deleted conversations and folders that can be restored or deleted for good. Main thread."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QObject, Signal

from app.bridge.store_lane import StoreLane
from app.controllers.backups import Backups
from app.controllers.folders import FoldersController
from app.controllers.library import LibraryController
from app.conversation.folder import Folder
from app.conversation.placement import FolderId
from app.conversation.tree import DeletedConversation
from app.store.backups import ids_in_backups
from app.store.place import DataPlace
from engine.types import ConversationId

Deleted = DeletedConversation | Folder


class RecentlyDeleted(QObject):
    """The list of deleted conversations and folders, and the actions on its items."""

    changed = Signal()

    def __init__(
        self,
        library: LibraryController,
        folders: FoldersController,
        place: DataPlace,
        store: StoreLane,
        backups: Backups,
    ) -> None:
        super().__init__()
        self._place = place
        self._store = store
        self._in_backups: frozenset[str] = frozenset()
        self._library = library
        self._folders = folders
        library.deleted.changed.connect(self.changed)
        folders.changed.connect(self.changed)
        backups.changed.connect(self.changed)

    @property
    def items(self) -> list[Deleted]:
        """The items, the newest deletion first."""
        items = [*self._library.deleted.all, *self._folders.recently_deleted]
        return sorted(items, key=lambda item: -(item.deleted_at or 0.0))

    def look_into_backups(self) -> None:
        """Find the items that a backup contains, on the store thread."""
        database, ids = self._place.database, [_id(item) for item in self.items]

        def on_found(found: frozenset[str]) -> None:
            self._in_backups = found

        self._store.run_aside(lambda _store: ids_in_backups(database, ids), on_found)

    def count_in_backups(self, items: Iterable[Deleted]) -> int:
        """Return the number of items that a backup contained at the last look."""
        return sum(_id(item) in self._in_backups for item in items)

    def restore(self, items: Iterable[Deleted]) -> None:
        """Restore deleted items. Show the first of the conversations."""
        folders, chats = _parted(items)
        for folder_id in folders:
            self._folders.restore(folder_id)
        self._library.restore_all(chats)

    def remove(self, items: Iterable[Deleted]) -> None:
        """Delete items for good. The conversations of a folder stay."""
        folders, chats = _parted(items)
        for folder_id in folders:
            self._folders.remove(folder_id)
        self._library.deleted.remove_all(chats)


def _id(item: Deleted) -> str:
    return item.folder_id if isinstance(item, Folder) else item.summary.conversation_id


def _parted(items: Iterable[Deleted]) -> tuple[list[FolderId], list[ConversationId]]:
    """Return the ids of the folders and of the conversations among deleted items."""
    folders: list[FolderId] = []
    chats: list[ConversationId] = []
    for item in items:
        if isinstance(item, Folder):
            folders.append(item.folder_id)
        else:
            chats.append(item.summary.conversation_id)
    return folders, chats
