"""The states of the documents of folders. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.conversation.placement import FolderId
from app.viewmodels.folder_documents import FolderDocumentsStatus


class FolderDocuments(QObject):
    """Placeholder of the controller that reads documents ahead."""

    changed = Signal(object)  # argument: FolderId

    def status(self, folder_id: FolderId) -> FolderDocumentsStatus | None:  # noqa: ARG002
        return None

    def pause(self, folder_id: FolderId, paused: bool) -> None:  # noqa: FBT001
        """Pause or resume the reading of the documents of a folder."""
