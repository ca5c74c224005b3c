"""The text of a search result, found again in the chat that the result has opened. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.controllers.library import LibraryController
from app.controllers.search import SearchController
from app.conversation.tree import NodeId
from app.widgets.find_bar import FindBar
from engine.types import ConversationId


class FoundText(QObject):
    """Passes the text of an opened search result to the find bar, once its chat is on show.

    Create it after the pane, which ends an earlier find when it shows another chat.
    """

    def __init__(
        self, search: SearchController, library: LibraryController, bar: FindBar, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._library = library
        self._bar = bar
        self._wanted: ConversationId | None = None  # the chat of the result, until it is on show
        self._key = self._text = ""  # the found message, and the text to find in it
        search.located.connect(self._on_located)
        library.current_changed.connect(self._look)

    def _on_located(self, conversation_id: ConversationId, node_id: NodeId, text: str) -> None:
        self._wanted, self._key, self._text = conversation_id, node_id, text
        self._look()

    def _look(self) -> None:
        if self._wanted == self._library.current:
            self._bar.look_up(self._text, self._key)
            self._wanted = None
