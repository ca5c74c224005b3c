"""Files that the user drags onto the window: for the chat on show, or for a folder. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QMimeData, QObject, Qt
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from app.controllers.document_files import DocumentFiles
from app.theme.palette import Theme
from app.viewmodels.conversations import FolderRow
from app.widgets.attaching import has_droppable, local_paths
from app.widgets.chat_pane import ChatPane
from app.widgets.conversation_list import ConversationList
from app.widgets.drop_outline import DropOutline


class FileDrop(QObject):
    """Accepts files from everywhere in the window, and outlines the chat that gets them."""

    def __init__(self, theme: Theme, pane: ChatPane, window: QWidget) -> None:
        super().__init__(window)
        self._pane = pane
        self.outline = DropOutline(theme, pane)
        window.setAcceptDrops(True)
        window.installEventFilter(self)

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        match event:
            case QDragEnterEvent():  # a kind of QDropEvent, so it comes first
                self._enter(event)
            case QDropEvent() if event.type() is QEvent.Type.Drop:
                self._drop(event)
            case _ if event.type() is QEvent.Type.DragLeave:
                self.outline.hide()
            case _:
                pass
        return False

    def _enter(self, event: QDragEnterEvent) -> None:
        if has_droppable(event.mimeData()) and self._pane.composer.isEnabled():
            event.setDropAction(Qt.DropAction.CopyAction)
            event.accept()
            self.outline.cover()

    def _drop(self, event: QDropEvent) -> None:
        """Attach dropped files. They stay at their places."""
        self.outline.hide()
        event.setDropAction(Qt.DropAction.CopyAction)
        event.accept()
        self._pane.attaching.drop(event.mimeData())


class ListFileDrop(QObject):
    """Accepts files over the list of chats. A folder below the pointer gets them, else the chat."""

    def __init__(
        self, chats: ConversationList, pane: ChatPane, outline: DropOutline, files: DocumentFiles
    ) -> None:
        super().__init__(chats)
        self._chats = chats
        self._pane = pane
        self._outline = outline
        self._files = files
        chats.viewport().installEventFilter(self)

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Handle what is dragged if it is files. The list handles dragged chats itself."""
        if event.type() is QEvent.Type.DragLeave:
            self._outline.hide()
        if not isinstance(event, QDropEvent) or not has_droppable(event.mimeData()):
            return False
        folder = self._aim(event)
        event.setDropAction(Qt.DropAction.CopyAction)
        event.accept()
        if event.type() is QEvent.Type.Drop:
            self._drop(event.mimeData(), folder)
        return True

    def _aim(self, event: QDropEvent) -> FolderRow | None:
        """Outline the folder below the pointer and return it, or outline the chat."""
        at, mime = event.position().toPoint(), event.mimeData()
        folder = self._chats.folder_at(at) if local_paths(mime) else None
        self._chats.aim_at(folder)
        if folder is None and self._pane.composer.isEnabled():
            self._outline.cover()
        else:
            self._outline.hide()
        return folder

    def _drop(self, mime: QMimeData, folder: FolderRow | None) -> None:
        self._chats.aim_at(None)
        self._outline.hide()
        if folder is None:
            self._pane.attaching.drop(mime)
        else:
            self._files.add(folder.folder_id, local_paths(mime))
