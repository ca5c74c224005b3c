"""Copies of conversations: forks at a message, and duplicates of whole ones. Main thread.

A copy keeps the token ids of the answers, so that the engine finds their cached state and reads
nothing again. Undo removes a copy, and redo restores it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QObject, Signal

from app.controllers.desk import Desk
from app.controllers.library import LibraryController
from app.controllers.origin import Origin
from app.controllers.undo import UndoList
from app.conversation.branching import duplicate, fork
from app.conversation.tree import Conversation, MessageStatus, NodeId
from app.words import folders as words, undo as undo_words
from engine.types import ConversationId


class ChatCopies(QObject):
    """Makes copies of conversations, and lists them beside the originals."""

    # arguments: sentence that says what was done, function that undoes it
    done = Signal(str, object)
    failed = Signal(object)  # argument: a Problem

    def __init__(
        self, library: LibraryController, desk: Desk, undo: UndoList, origin: Origin
    ) -> None:
        super().__init__()
        self._library = library
        self._desk = desk
        self._undo = undo
        self._origin = origin

    def fork(self, conversation_id: ConversationId, node_id: NodeId) -> None:
        """Copy a branch down to a message into a new conversation, and show that conversation.

        The conversation must be in memory, and the message must have ended. See branching.fork().
        """
        forked = fork(
            self._desk.get(conversation_id),
            node_id,
            ConversationId(self._origin.new_id()),
            self._origin.new_id,
            now=self._origin.now(),
        )
        self._library.add_beside(forked, conversation_id)
        self._library.select(forked.conversation_id)
        undo = self._undo_of([forked], conversation_id, undo_words.FORK)
        self.done.emit(
            words.toast_forked(self._library.listed.summary(conversation_id).title), undo
        )

    def duplicate(self, conversation_ids: Sequence[ConversationId]) -> None:
        """Copy conversations with all their versions. The copy of a single one is shown."""
        wanted, made = list(conversation_ids), list[Conversation]()
        original = self._library.current if len(wanted) > 1 else wanted[0]

        def on_ready(conversation: Conversation) -> None:
            copied = duplicate(
                conversation,
                ConversationId(self._origin.new_id()),
                self._origin.new_id,
                now=self._origin.now(),
            )
            self._library.add_beside(copied, conversation.conversation_id)
            made.append(copied)
            next_one()

        def next_one() -> None:
            if wanted:
                self._desk.open(wanted.pop(0), on_ready, self.failed.emit)
            else:
                self._on_duplicated(made, original)

        next_one()

    def can_duplicate(self, conversation_id: ConversationId) -> bool:
        """Return False while an answer of the conversation is written, or if it is not listed."""
        if conversation_id not in self._library.listed:
            return False
        if conversation_id not in self._desk:
            return True
        nodes = self._desk.get(conversation_id).nodes.values()
        return all(node.status is not MessageStatus.STREAMING for node in nodes)

    def _on_duplicated(self, made: Sequence[Conversation], original: ConversationId) -> None:
        undo = self._undo_of(made, original, undo_words.duplicate(len(made)))
        if len(made) == 1:
            self._library.select(made[0].conversation_id)
        title = self._library.listed.summary(original).title if len(made) == 1 else ""
        self.done.emit(words.toast_duplicated(title=title, count=len(made)), undo)

    def _undo_of(
        self, made: Sequence[Conversation], original: ConversationId, name: str
    ) -> Callable[[], object]:
        ids = [one.conversation_id for one in made]
        return self._undo.add(
            name,
            partial(self._library.discard_all, ids, original),
            redo=partial(self._library.restore_all, ids),
        )
