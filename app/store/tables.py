"""The rows of conversations, messages and shown versions, written in the caller's transaction.

Use on the store thread only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from app.conversation.tree import Conversation, MessageNode, NodeId
from app.store import statements
from app.store.attachments import AttachmentStore
from app.store.conversation_rows import ROOT, ConversationRecord, conversation_row, shown_row
from app.store.database import Database
from app.store.message_rows import message_values
from engine.types import ConversationId


class ConversationTables:
    """Writes rows. The caller opens the transactions."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.attachments = AttachmentStore(database)

    def insert(self, conv: Conversation) -> None:
        """Write a conversation that is not stored yet."""
        self.insert_row(conversation_row(conv))
        self.write_nodes(conv.conversation_id, list(conv.nodes.values()))
        self.attachments.set_draft(conv.conversation_id, conv.draft_attachments)
        self.write_shown(conv)

    def insert_row(self, row: ConversationRecord) -> None:
        self._database.run(statements.INSERT_CONVERSATION, row)

    def update(self, conv: Conversation, *, since: Conversation) -> None:
        """Write the values of a conversation that differ from those that are stored."""
        row, old = conversation_row(conv), conversation_row(since)
        # UPDATE_CONVERSATION leaves a column unchanged if its parameter is None (NULL).
        changes = [None if new == was else new for new, was in zip(row, old, strict=True)]
        self._database.run(statements.UPDATE_CONVERSATION, (*changes[1:], row.conversation_id))

    def write_nodes(self, conversation_id: ConversationId, nodes: Sequence[MessageNode]) -> None:
        rows = (message_values(conversation_id, node) for node in nodes)
        self._database.run_many(statements.PUT_MESSAGE, rows)
        self.attachments.add(conversation_id, nodes)

    def write_shown(self, conv: Conversation) -> None:
        self._database.run(statements.DELETE_SHOWN, (conv.conversation_id,))
        rows = (
            shown_row(conv.conversation_id, parent, conv.shown[parent]) for parent in conv.shown
        )
        self._database.run_many(statements.INSERT_SHOWN, rows)

    def move_messages(self, source: ConversationId, target: ConversationId) -> None:
        """Give the messages of a conversation to another one."""
        self._database.run(statements.MOVE_MESSAGES, (target, source))
        self._database.run(statements.MOVE_ATTACHMENTS, (target, source))

    def show_newest(
        self, conversation_id: ConversationId, parents: Iterable[NodeId | None]
    ) -> None:
        """Show the newest version below each of some messages."""
        keys = ((conversation_id, parent or ROOT) for parent in parents)
        self._database.run_many(statements.SHOW_NEWEST, keys)

    def set_updated(self, conversation_id: ConversationId, updated_at: float) -> None:
        """Set the time of the last message, unless it is earlier than the present one."""
        self._database.run(statements.SET_UPDATED, (updated_at, conversation_id))
