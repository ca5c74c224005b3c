"""Search over the titles and messages of all conversations. Main thread.

The store thread searches. While it works, only the newest words wait: what is typed fast is
searched for once.
"""

from __future__ import annotations

from functools import partial
from itertools import islice

from PySide6.QtCore import QObject, Signal

from app.bridge.store_lane import StoreLane
from app.controllers.chat import ChatController
from app.controllers.desk import Desk
from app.controllers.library import LibraryController
from app.controllers.origin import Origin
from app.conversation.tree import Conversation, NodeId
from app.store.search import (
    ConversationHits,
    file_matches,
    is_searchable,
    match_pattern,
    query_terms,
)
from app.viewmodels.find import case_folded
from app.viewmodels.search_filters import NO_FILTERS, Filters
from engine.types import ConversationId

_MAX_PLACES = 500  # number of marked places in the text of a file


class SearchController(QObject):
    """The words that the user searches for, and the conversations that contain them."""

    changed = Signal()  # the words or the found conversations have changed
    # arguments: ConversationId, NodeId of a message that is about to be shown, the text to find in
    # it
    located = Signal(object, object, str)
    # arguments: the Attachment of an opened result, and the places of the searched words in its
    # text
    file_located = Signal(object, object)
    failed = Signal(object)  # argument: the Problem of a failed search

    def __init__(
        self,
        store: StoreLane,
        desk: Desk,
        library: LibraryController,
        chat: ChatController,
        origin: Origin,
    ) -> None:
        super().__init__()
        self._store = store
        self._desk = desk
        self._library = library
        self._chat = chat
        self._origin = origin
        self.words = ""
        self.filters = NO_FILTERS
        self.found: tuple[ConversationHits, ...] | None = None  # None until a search has ended
        self._is_searching = False
        library.list_changed.connect(self.search_again)

    def look_for(self, words: str) -> None:
        """Search for all words. If there are only single letters, end the search."""
        words = words.strip() if is_searchable(words) else ""
        if words == self.words:
            return
        self.words = words
        if not words:
            self.found = None
        self.changed.emit()
        self.search_again()

    def set_filters(self, filters: Filters) -> None:
        """Limit the search to messages that fulfil these conditions."""
        if filters != self.filters:
            self.filters = filters
            self.changed.emit()
            self.search_again()

    def end(self) -> None:
        """End the search and remove its filters."""
        self.set_filters(NO_FILTERS)
        self.look_for("")

    def search_again(self) -> None:
        """Search for the same words again, because a conversation has changed."""
        if self.words and not self._is_searching:
            self._is_searching = True
            words, filters = self.words, self.filters
            only = filters.of_search(self._origin.now())
            self._store.run(
                lambda store: store.search.find_anywhere(words, only),
                partial(self._on_found, words, filters),
                self._on_failed,
            )

    def open(
        self,
        conversation_id: ConversationId,
        node_id: NodeId | None,
        text: str = "",
        file: str = "",
    ) -> None:
        """Show a conversation. With node_id, show the branch of this message, and scroll to it.

        Args:
            conversation_id: the conversation.
            node_id: the found message.
            text: the found text of the message. It is shown in the find bar as the user typed it.
            file: name of the attached file that has the text, whose text is opened too.
        """
        if node_id is None:
            self._library.select(conversation_id)
        else:
            self._desk.open(
                conversation_id,
                lambda found: self._show(found, node_id, text, file),
                self.failed.emit,
            )

    def _show(self, conversation: Conversation, node_id: NodeId, text: str, file: str) -> None:
        conversation_id = conversation.conversation_id
        self._chat.show_branch(conversation_id, node_id)
        typed = (term for term in query_terms(self.words) if case_folded(term) == case_folded(text))
        self.located.emit(conversation_id, node_id, next(typed, text))
        self._library.select(conversation_id)
        node = conversation.nodes.get(node_id)
        files = () if node is None else node.attachments
        found = next((one for one in files if one.text and one.name == file), None)
        if found is not None:
            pattern = match_pattern(query_terms(self.words))
            self._store.run(
                lambda _store: tuple(islice(file_matches(found.text, pattern), _MAX_PLACES)),
                partial(self.file_located.emit, found),
                self.failed.emit,
            )

    def _on_found(self, words: str, filters: Filters, found: tuple[ConversationHits, ...]) -> None:
        self._is_searching = False
        if (words, filters) != (self.words, self.filters):
            self.search_again()
            return
        self.found = found
        self.changed.emit()

    def _on_failed(self, problem: object) -> None:
        self._is_searching = False
        self.failed.emit(problem)
