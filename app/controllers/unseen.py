"""The conversations whose last answer ended out of sight, kept across restarts. Main thread."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from app.bridge.store_lane import StoreLane
from engine.problem import Problem
from engine.types import ConversationId


class UnseenAnswers:
    """The marks of unseen answers. A deleted conversation keeps its mark, for its restoration."""

    def __init__(self, store: StoreLane, on_error: Callable[[Problem], None]) -> None:
        self._store = store
        self._on_error = on_error
        self._ids: set[ConversationId] = set()

    def load(self) -> None:
        """Add the stored marks. Queue the loading of the list after this call."""
        self._store.run(lambda store: store.unseen.load(), self._ids.update, self._on_error)

    def among(self, listed: Container[ConversationId]) -> frozenset[ConversationId]:
        """Return those of the given conversations that have an unseen answer."""
        return frozenset(one for one in self._ids if one in listed)

    def add(self, conversation_ids: Iterable[ConversationId]) -> None:
        added = set(conversation_ids) - self._ids
        self._ids |= added
        self._mark(added, unseen=True)

    def discard(self, conversation_id: ConversationId) -> bool:
        """Remove the mark of a conversation. Return True if it had one."""
        is_marked = conversation_id in self._ids
        if is_marked:
            self._ids.discard(conversation_id)
            self._mark({conversation_id}, unseen=False)
        return is_marked

    def _mark(self, conversation_ids: set[ConversationId], *, unseen: bool) -> None:
        if conversation_ids:
            self._store.run(
                lambda store: store.unseen.mark(conversation_ids, unseen=unseen),
                None,
                self._on_error,
            )
