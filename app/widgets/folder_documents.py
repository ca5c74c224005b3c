"""The documents of folders in the main window: their sheet, dropped files, and marks in the list.

Main thread.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QWidget

from app.controllers.core import Core
from app.conversation.folder import Folder
from app.conversation.placement import FolderId
from app.theme.palette import Theme
from app.viewmodels.document_lines import FolderMark, folder_mark
from app.widgets.chat_pane import ChatPane
from app.widgets.documents_sheet import DocumentsSheet
from app.widgets.file_drop import FileDrop, ListFileDrop
from app.widgets.folder_sheet import FolderSheet
from app.widgets.pane_toast import PaneToast
from app.widgets.sidebar import Sidebar
from app.words import folder_documents as words


class DocumentsOfFolders(QObject):
    """Opens the sheet of documents, and marks the rows of folders that have some."""

    def __init__(
        self,
        theme: Theme,
        core: Core,
        sidebar: Sidebar,
        pane: ChatPane,
        drop: FileDrop,
        toast: PaneToast,
    ) -> None:
        super().__init__(pane)
        self._theme = theme
        self._core = core
        self._sidebar = sidebar
        self._pane = pane
        self._toast = toast
        self._sheets: list[FolderId] = []  # folders whose sheets are open
        chats = sidebar.list
        sidebar.mark_folders(self._mark)
        sidebar.menus.documents_requested.connect(self.open)
        pane.empty.documents_requested.connect(self.open)
        ListFileDrop(chats, pane, drop.outline, core.document_files)
        core.document_files.added.connect(self._on_added)
        core.document_files.refused.connect(self._on_refused)
        for changed in (
            core.documents.changed,
            core.document_files.changed,
            core.folders.changed,
            core.models.status_changed,
        ):
            changed.connect(chats.viewport().update)
        core.folders.changed.connect(lambda: pane.transcript.refresh(core.library.current))
        app = QGuiApplication.instance()
        assert isinstance(app, QGuiApplication)
        app.applicationStateChanged.connect(self._on_activated)

    def open(self, folder: Folder) -> None:
        """Open the sheet of a folder's documents, over the folder's own sheet if that is open."""
        below = QApplication.activeModalWidget()
        parent = below if isinstance(below, FolderSheet) else self._sidebar.window()
        sheet = DocumentsSheet(self._theme, self._core, folder, self._pane.texts.open_over, parent)
        folder_id = folder.folder_id
        self._sheets.append(folder_id)
        sheet.finished.connect(lambda: self._on_closed(folder_id, parent))
        sheet.open()

    def _on_closed(self, folder_id: FolderId, parent: QWidget) -> None:
        self._sheets.remove(folder_id)
        folder = self._core.folders.get(folder_id)
        if isinstance(parent, FolderSheet) and folder is not None:
            parent.show_documents(folder)

    def _mark(self, folder_id: FolderId) -> FolderMark | None:
        folder = self._core.folders.get(folder_id)
        if folder is None or not folder.documents:
            return None
        return folder_mark(
            len(folder.documents),
            self._core.documents.status(folder_id),
            self._core.models.status.name,
            self._core.document_files.states(folder_id).values(),
        )

    def _on_added(self, folder_id: FolderId, count: int) -> None:
        """Say that dropped files are documents. An open sheet of the folder shows them."""
        folder = self._core.folders.get(folder_id)
        if folder is not None and folder_id not in self._sheets:
            self._toast.say(words.added(count, folder.name))

    def _on_refused(self, folder_id: FolderId, sentences: Sequence[str]) -> None:
        """Say why files are no documents. An open sheet of the folder says it itself."""
        if folder_id not in self._sheets:
            self._toast.warn("\n".join(sentences))

    def _on_activated(self, state: Qt.ApplicationState) -> None:
        """Look for files that changed while another app was in front."""
        if state is Qt.ApplicationState.ApplicationActive:
            self._core.document_files.look_at_all()
