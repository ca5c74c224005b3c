"""The deleted conversations and folders that can be restored or deleted for good. Main thread."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QObject, Signal

from app.controllers.folders import FoldersController
from app.controllers.library import LibraryController
from app.conversation.folder import Folder
from app.conversation.placement import FolderId
from app.conversation.tree import DeletedConversation
from engine.types import ConversationId

Deleted = DeletedConversation | Folder


class RecentlyDeleted(QObject):
    """The list of deleted conversations and folders, and the actions on its items."""

    changed = Signal()

    def __init__(self, library: LibraryController, folders: FoldersController) -> None:
        super().__init__()
        self._library = library
        self._folders = folders
        library.recently_deleted_changed.connect(self.changed)
        folders.changed.connect(self.changed)

    @property
    def items(self) -> list[Deleted]:
        """The items, the newest deletion first."""
        items = [*self._library.recently_deleted, *self._folders.recently_deleted]
        return sorted(items, key=lambda item: -(item.deleted_at or 0.0))

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
        self._library.remove_all(chats)


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
