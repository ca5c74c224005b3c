"""The conversations whose last answer ended out of sight, kept across restarts. Main thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from PySide6.QtCore import QObject, Signal

from app.bridge.store_lane import StoreLane
from app.controllers.listed_chats import ListedChats
from app.controllers.turns import Turns
from engine.problem import Problem
from engine.types import ConversationId


class UnseenAnswers(QObject):
    """The marks of unseen answers. A deleted conversation keeps its mark, for its restoration."""

    changed = Signal()  # not emitted by load() and show()
    # argument: ConversationSummary of a conversation; its answer ended out of sight
    finished = Signal(object)

    def __init__(
        self,
        store: StoreLane,
        turns: Turns,
        listed: ListedChats,
        on_error: Callable[[Problem], None],
    ) -> None:
        super().__init__()
        self._store = store
        self._turns = turns
        self._listed = listed
        self._on_error = on_error
        self._marked: set[ConversationId] = set()
        self._shown: ConversationId | None = None
        self._is_window_open = True
        # True if the conversation on show had an unseen answer when it was opened.
        self.was_opened_unseen = False
        turns.answered.connect(self._on_answered)

    @property
    def ids(self) -> frozenset[ConversationId]:
        """The listed conversations whose last answer ended while they were not on show."""
        return frozenset(one for one in self._marked if one in self._listed)

    def load(self) -> None:
        """Add the stored marks. Queue the loading of the list after this call."""
        self._store.run(lambda store: store.unseen.load(), self._marked.update, self._on_error)

    def show(self, conversation_id: ConversationId) -> None:
        """Note that another conversation is on show. Its mark goes."""
        self._shown = conversation_id
        self.was_opened_unseen = self._discard(conversation_id)

    def set_window_open(self, is_open: bool) -> None:  # noqa: FBT001 (setter)
        """Note that the window was opened or closed. No conversation is on show without it."""
        self._is_window_open = is_open
        shown = self._shown
        if is_open and shown is not None and shown in self._listed and self._discard(shown):
            self.changed.emit()

    def note_cut_off(self) -> None:
        """Mark the running answers that are not on show as unseen, because the app ends.

        Call this before the window is hidden: no conversation is on show without it.
        """
        self._add(one for one in self._turns.writing if not self._is_on_show(one))

    def _on_answered(self, conversation_id: ConversationId) -> None:
        if not self._is_on_show(conversation_id) and conversation_id in self._listed:
            self._add((conversation_id,))
            self.changed.emit()
            self.finished.emit(self._listed.summary(conversation_id))

    def _is_on_show(self, conversation_id: ConversationId) -> bool:
        return conversation_id == self._shown and self._is_window_open

    def _add(self, conversation_ids: Iterable[ConversationId]) -> None:
        added = set(conversation_ids) - self._marked
        self._marked |= added
        self._mark(added, unseen=True)

    def _discard(self, conversation_id: ConversationId) -> bool:
        """Remove the mark of a conversation. Return True if it had one."""
        is_marked = conversation_id in self._marked
        if is_marked:
            self._marked.discard(conversation_id)
            self._mark({conversation_id}, unseen=False)
        return is_marked

    def _mark(self, conversation_ids: set[ConversationId], *, unseen: bool) -> None:
        if conversation_ids:
            self._store.run(
                lambda store: store.unseen.mark(conversation_ids, unseen=unseen),
                None,
                self._on_error,
            )
