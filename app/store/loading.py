"""A conversation from its rows, checked for damage. Store thread only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from app.conversation.attachments import Attachment
from app.conversation.tree import Conversation, MessageNode, MessageStatus, NodeId, add_nodes
from app.store import statements
from app.store.attachments import AttachmentStore
from app.store.checks import text_checksum
from app.store.conversation_rows import ConversationRecord, ShownRow, conversation_from, shown_from
from app.store.database import Database
from app.store.errors import ConversationMissingError, DatabaseDamagedError
from app.store.message_rows import node_from
from app.store.schema import Value
from app.words import problems as words
from engine.types import ConversationId, FinishReason, Role


def load_conversation(
    database: Database, attachments: AttachmentStore, conversation_id: ConversationId
) -> Conversation:
    """Return a conversation with all its messages. See ConversationStore.load().

    If a row or a text was changed by anything but the app, the damage is noted for the next start.

    Raises:
        ConversationMissingError: the conversation was removed for good, or never stored.
        DatabaseDamagedError: the rows are no valid conversation.
    """
    rows = database.rows(statements.SELECT_CONVERSATION, (conversation_id,))
    if not rows:
        raise ConversationMissingError(words.not_stored(conversation_id))
    messages = database.rows(statements.SELECT_MESSAGES, (conversation_id,))
    files = attachments.load(conversation_id)
    try:
        nodes = [_with_files(node_from(row[:-1]), files) for row in messages]
        _check_tree(nodes)
    except (KeyError, TypeError, ValueError) as error:
        database.note_damage()
        raise DatabaseDamagedError(words.BAD_MESSAGE, details=repr(error)) from error
    _check_texts(database, nodes, [row[-1] for row in messages])
    if database.is_read_only:  # stop_interrupted() could not be run
        nodes = [_stopped(node) for node in nodes]
    choices = database.rows(statements.SELECT_SHOWN, (conversation_id,))
    shown = dict(shown_from(ShownRow._make(row)) for row in choices)
    # The messages come in order of creation, so parents come first. add_nodes() shows the
    # newest versions; replace() then restores the versions that were shown before.
    conv = add_nodes(conversation_from(ConversationRecord._make(rows[0])), *nodes)
    return replace(conv, shown=shown, draft_attachments=files.get("", ()))


def _check_tree(nodes: Iterable[MessageNode]) -> None:
    """Check that parents come first and roles alternate.

    Raises:
        KeyError, ValueError: a message has no such parent.
    """
    roles: dict[NodeId | None, Role] = {None: Role.ASSISTANT}
    for node in nodes:
        if roles[node.parent] is node.role:
            raise ValueError("two messages in a row have the same role")
        roles[node.node_id] = node.role


def _check_texts(database: Database, nodes: list[MessageNode], checksums: list[Value]) -> None:
    """Check that the messages have the texts that were written. 4,000 take about 10 ms.

    Raises:
        DatabaseDamagedError: a text has changed.
    """
    for node, checksum in zip(nodes, checksums, strict=True):
        if text_checksum(node.content, node.reasoning) != checksum:
            database.note_damage()
            raise DatabaseDamagedError(words.CHANGED_MESSAGE, details=node.node_id)


def _stopped(node: MessageNode) -> MessageNode:
    """Return a message as stop_interrupted() would have changed it."""
    if node.status is not MessageStatus.STREAMING:
        return node
    generation = node.generation and replace(node.generation, finish_reason=FinishReason.ERROR)
    return replace(node, status=MessageStatus.STOPPED, generation=generation)


def _with_files(node: MessageNode, files: Mapping[str, tuple[Attachment, ...]]) -> MessageNode:
    """Return a message with its attachments; most messages have none."""
    found = files.get(node.node_id)
    return node if found is None else replace(node, attachments=found)
