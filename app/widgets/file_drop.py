"""Files that the user drags onto the window, for the chat on show. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from app.theme.palette import Theme
from app.widgets.attaching import has_droppable
from app.widgets.chat_pane import ChatPane
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
