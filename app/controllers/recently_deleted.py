"""The deleted conversations and folders that can be restored or deleted for good. Main thread."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QObject, Signal

from app.controllers.folders import FoldersController
from app.controllers.library import LibraryController
from app.conversation.folder import Folder
from app.conversation.tree import DeletedConversation

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
        """Restore deleted items. Show a restored conversation."""
        for item in items:
            if isinstance(item, Folder):
                self._folders.restore(item.folder_id)
            else:
                self._library.restore(item.summary.conversation_id)

    def remove(self, items: Iterable[Deleted]) -> None:
        """Delete items for good. The conversations of a folder stay."""
        for item in items:
            if isinstance(item, Folder):
                self._folders.remove(item.folder_id)
            else:
                self._library.remove(item.summary.conversation_id)
