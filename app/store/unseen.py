"""The store of unseen answers. Use on the store thread only.

A conversation has an unseen answer if its last answer ended out of sight, and the user has not
opened the conversation since. The mark is a column of the conversation, which a deletion does not
change.
"""

from __future__ import annotations

from collections.abc import Iterable

from app.store.database import Database
from engine.types import ConversationId

_SELECT = "SELECT conversation_id FROM conversations WHERE unseen"
_MARK = "UPDATE conversations SET unseen = ? WHERE conversation_id = ?"
_MARK_INTERRUPTED = """
    UPDATE conversations SET unseen = 1
    WHERE conversation_id IN (SELECT conversation_id FROM messages WHERE status = 'streaming')
"""


class UnseenStore:
    """The marks of all conversations, deleted ones too. Each method is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self) -> frozenset[ConversationId]:
        return frozenset(ConversationId(str(row[0])) for row in self._database.rows(_SELECT))

    def mark(self, conversation_ids: Iterable[ConversationId], *, unseen: bool) -> None:
        """Set or remove the mark of conversations. One that is not stored is skipped."""
        rows = ((unseen, conversation_id) for conversation_id in conversation_ids)
        with self._database.transaction():
            self._database.run_many(_MARK, rows)

    def mark_interrupted(self) -> None:
        """Mark the conversations whose reply a crash interrupted. The reply must still stream."""
        self._database.run(_MARK_INTERRUPTED)
