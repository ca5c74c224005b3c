"""The SQL statements of conversations.py.

The columns in a statement are in the same order as the fields of a row class, such as SummaryRow,
or as message_rows.COLUMNS.
"""

from __future__ import annotations

from app.store.conversation_rows import ConversationRecord, DeletedColumns, ShownRow, SummaryRow
from app.store.message_rows import COLUMNS as MESSAGE_COLUMNS


def _select(table: str, columns: tuple[str, ...], rest: str) -> str:
    return f"SELECT {', '.join(columns)} FROM {table} {rest}"  # noqa: S608 - only constants


def _insert(table: str, columns: tuple[str, ...], rest: str = "") -> str:
    marks = ", ".join("?" * len(columns))
    # The statement has only constants.
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks}) {rest}"  # noqa: S608


def _assign(pattern: str, columns: tuple[str, ...]) -> str:
    return ", ".join(pattern.format(column) for column in columns)


INSERT_CONVERSATION = _insert("conversations", ConversationRecord._fields)
SELECT_CONVERSATION = _select(
    "conversations", ConversationRecord._fields, "WHERE conversation_id = ?"
)
SELECT_SUMMARIES = _select(
    "conversations",
    SummaryRow._fields,
    "WHERE deleted_at IS NULL ORDER BY updated_at DESC, created_at DESC",
)
# Parameters: a value for each column except the id, then the id. A NULL parameter leaves its column
# unchanged. No caller needs to set a column to NULL. The statement has only constants.
_CHANGES = _assign("{0} = coalesce(?, {0})", ConversationRecord._fields[1:])
UPDATE_CONVERSATION = f"UPDATE conversations SET {_CHANGES} WHERE conversation_id = ?"  # noqa: S608
SELECT_DELETED = _select(
    "conversations",
    DeletedColumns._fields,
    "WHERE deleted_at > 0 ORDER BY deleted_at DESC",  # 0: an import has not ended
)
SET_DELETED_AT = "UPDATE conversations SET deleted_at = ? WHERE conversation_id = ?"
PURGE = "DELETE FROM conversations WHERE deleted_at <= ? RETURNING conversation_id"
# Only a conversation that is marked as deleted is removed.
MARK_REMOVED = (
    "UPDATE conversations SET deleted_at = ? WHERE conversation_id = ? AND deleted_at IS NOT NULL"
)
# Parameters: a conversation, its time of deletion, and a number of messages.
REMOVE_MESSAGES = """
    DELETE FROM messages WHERE message_number IN (
        SELECT message_number FROM messages JOIN conversations USING (conversation_id)
        WHERE conversation_id = ? AND conversations.deleted_at = ? LIMIT ?
    )
"""

# Parameters: a time of deletion, and a JSON array of ids.
REMOVE_DELETED_AT = (
    "DELETE FROM conversations WHERE deleted_at = ?"
    " AND conversation_id IN (SELECT value FROM json_each(?))"
)
SELECT_IDS = "SELECT conversation_id FROM conversations"
HAS_CONVERSATION = "SELECT 1 FROM conversations WHERE conversation_id = ?"
SET_UPDATED = "UPDATE conversations SET updated_at = max(updated_at, ?) WHERE conversation_id = ?"

# Removes the messages that were deleted before a given time and all messages below them, which have
# no deleted_at of their own.
PURGE_MESSAGES = """
    WITH RECURSIVE gone (conversation_id, node_id) AS (
        SELECT conversation_id, node_id FROM messages WHERE deleted_at <= ?
        UNION
        SELECT below.conversation_id, below.node_id
        FROM messages AS below JOIN gone USING (conversation_id)
        WHERE below.parent = gone.node_id
    )
    DELETE FROM messages WHERE node_id IN (SELECT node_id FROM gone)
"""
PURGE_SHOWN = "DELETE FROM shown_versions WHERE node_id NOT IN (SELECT node_id FROM messages)"

PUT_MESSAGE = _insert(
    "messages",
    MESSAGE_COLUMNS,
    "ON CONFLICT (node_id) DO UPDATE SET " + _assign("{0} = excluded.{0}", MESSAGE_COLUMNS[2:]),
)
SELECT_MESSAGES = _select(
    "messages LEFT JOIN message_checks USING (message_number)",
    (*MESSAGE_COLUMNS, "checksum"),
    "WHERE conversation_id = ? ORDER BY message_number",
)
# Parameters: a conversation, and a JSON array of message ids.
TAKEN_IDS = """
    SELECT count(*) FROM messages
    WHERE conversation_id <> ?1 AND node_id IN (SELECT value FROM json_each(?2))
"""
MOVE_MESSAGES = "UPDATE messages SET conversation_id = ? WHERE conversation_id = ?"
SAVE_TEXT = (
    "UPDATE messages SET content = ?, reasoning = ? WHERE node_id = ? AND status = 'streaming'"
)
STOP_INTERRUPTED = (
    "UPDATE messages SET status = 'stopped', finish_reason = 'error' WHERE status = 'streaming'"
)

INSERT_SHOWN = _insert("shown_versions", ShownRow._fields)
SELECT_SHOWN = _select("shown_versions", ShownRow._fields, "WHERE conversation_id = ?")
SHOW_NEWEST = "DELETE FROM shown_versions WHERE conversation_id = ? AND parent = ?"
DELETE_SHOWN = "DELETE FROM shown_versions WHERE conversation_id = ?"

FIGURES = """
    SELECT
        (SELECT page_count * page_size FROM pragma_page_count, pragma_page_size),
        (SELECT count(*) FROM conversations),
        (SELECT count(*) FROM conversations WHERE deleted_at IS NOT NULL),
        (SELECT count(*) FROM messages),
        (SELECT max(0, last - first + 1) FROM search_progress)
"""

SEARCH_PENDING = "SELECT first, last FROM search_progress"
# The numbers of the last messages of a range, until a number of messages or a size is reached. The
# newest message comes first, the last row is the first message of the slice.
SEARCH_SIZES = """
    SELECT message_number FROM (
        SELECT message_number, sum(length(content)) OVER (ORDER BY message_number DESC) AS size,
            length(content) AS own
        FROM (
            SELECT message_number, content FROM messages WHERE message_number BETWEEN ? AND ?
            ORDER BY message_number DESC LIMIT ?
        )
    )
    WHERE size - own <= ?
"""
SEARCH_INDEX = """
    INSERT INTO message_search (rowid, text)
    SELECT message_number, search_text(content) FROM messages
    WHERE message_number BETWEEN ? AND ? AND status <> 'streaming'
"""
SEARCH_DONE = "UPDATE search_progress SET last = ? - 1"
# CROSS JOIN fixes the order of the loops: SQLite then reads the hits newest first and stops at the
# limit, instead of sorting all hits.
SEARCH_FIND = """
    SELECT conversations.conversation_id, title, updated_at, node_id, role, messages.created_at,
        content, message_number
    FROM message_search
    CROSS JOIN messages ON messages.message_number = message_search.rowid
    CROSS JOIN conversations USING (conversation_id)
    WHERE message_search MATCH ?1
        AND conversations.deleted_at IS NULL
        AND (?2 IS NULL OR messages.created_at >= ?2)
        AND (?3 IS NULL OR messages.created_at < ?3)
        AND (?4 IS NULL OR json_extract(generation, '$.model_name') = ?4)
        AND (?6 IS NULL OR folder_id = ?6)
        AND (?7 IS NULL OR archived = ?7)
    ORDER BY message_search.rowid DESC
    LIMIT ?5
"""
SEARCH_TITLES = """
    SELECT conversation_id, title, updated_at FROM conversations
    WHERE deleted_at IS NULL
        AND (?1 IS NULL OR updated_at >= ?1)
        AND (?2 IS NULL OR updated_at < ?2)
        AND (?3 IS NULL OR folder_id = ?3)
        AND (?4 IS NULL OR archived = ?4)
    ORDER BY updated_at DESC
"""
# The titles of the conversations in which one of these models has answered: the model at the path
# ?1, or any whose path begins with ?2 (unless ?2 is NULL).
TITLES_BY_MODEL = """
    SELECT title FROM conversations
    WHERE deleted_at IS NULL AND EXISTS (
        SELECT 1 FROM (
            SELECT CASE WHEN json_valid(generation)
                THEN json_extract(generation, '$.model_path') END AS path
            FROM messages
            WHERE messages.conversation_id = conversations.conversation_id
                AND messages.deleted_at IS NULL
        )
        WHERE path = ?1 OR substr(path, 1, length(?2)) = ?2
    )
    ORDER BY updated_at DESC
"""
# The deleted messages of a conversation, and all messages below them.
DELETED_MESSAGES = """
    WITH RECURSIVE gone (node_id) AS (
        SELECT node_id FROM messages INDEXED BY messages_deleted
        WHERE deleted_at IS NOT NULL AND conversation_id = ?1
        UNION
        SELECT below.node_id FROM messages AS below JOIN gone ON below.parent = gone.node_id
        WHERE below.conversation_id = ?1
    )
    SELECT node_id FROM gone
"""

_ATTACHMENT_COLUMNS = (
    "conversation_id", "node_id", "place", "name", "kind", "num_pages", "part", "source", "digest",
    "picture", "from_folder",
)  # fmt: skip
INSERT_ATTACHMENT_TEXT = _insert(
    "attachment_texts", ("digest", "text"), "ON CONFLICT (digest) DO NOTHING"
)
INSERT_ATTACHMENT = _insert("attachments", _ATTACHMENT_COLUMNS, "ON CONFLICT DO NOTHING")
SELECT_ATTACHMENTS = _select(
    "attachments LEFT JOIN attachment_texts USING (digest)",
    (*_ATTACHMENT_COLUMNS, "text"),
    "WHERE conversation_id = ? AND place >= 0 AND coalesce(text, picture) IS NOT NULL"
    " ORDER BY node_id, place",
)
# Parameter: a conversation, or NULL for all.
SELECT_PICTURES = """
    SELECT picture FROM attachments
    WHERE picture IS NOT NULL AND (?1 IS NULL OR conversation_id = ?1)
"""
# The old attachments of a draft get negative places until the new ones are written.
MOVE_DRAFT_ATTACHMENTS = (
    "UPDATE attachments SET place = -1 - place WHERE conversation_id = ? AND node_id = ''"
)
DELETE_MOVED_ATTACHMENTS = (
    "DELETE FROM attachments WHERE conversation_id = ? AND node_id = '' AND place < 0"
)
_DOCUMENT_COLUMNS = (
    "folder_id", "place", "name", "kind", "num_pages", "part", "source", "digest", "size",
    "modified_at",
)  # fmt: skip
# Parameter: a folder, or NULL for all.
SELECT_DOCUMENTS = _select(
    "folder_documents JOIN attachment_texts USING (digest)",
    (*_DOCUMENT_COLUMNS, "text"),
    "WHERE ?1 IS NULL OR folder_id = ?1 ORDER BY folder_id, place",
)
SELECT_DOCUMENT_ROWS = _select(
    "folder_documents", _DOCUMENT_COLUMNS, "WHERE folder_id = ? ORDER BY place"
)
INSERT_DOCUMENT = _insert("folder_documents", _DOCUMENT_COLUMNS)
# The old documents of a folder get negative places until the new ones are written.
MOVE_DOCUMENTS = "UPDATE folder_documents SET place = -1 - place WHERE folder_id = ?"
DELETE_MOVED_DOCUMENTS = "DELETE FROM folder_documents WHERE folder_id = ? AND place < 0"
MOVE_ATTACHMENTS = "UPDATE attachments SET conversation_id = ? WHERE conversation_id = ?"
# The messages with an attachment that matches. The same conditions as SEARCH_FIND. Documents of a
# folder are in each of its chats, and would hide what was said in others. A document of a folder is
# found once: in the newest chat that begins with it.
SEARCH_ATTACHMENTS = """
    SELECT conversation_id, title, updated_at, node_id, role, created_at, name, text, message_number
    FROM (SELECT conversations.conversation_id, title, updated_at, messages.node_id, role,
        messages.created_at, name, attachment_texts.text, messages.message_number, from_folder,
        row_number() OVER (
            PARTITION BY from_folder, digest ORDER BY messages.message_number DESC) AS place
    FROM attachment_search
    CROSS JOIN attachment_texts ON attachment_texts.text_number = attachment_search.rowid
    CROSS JOIN attachments USING (digest)
    CROSS JOIN messages ON messages.node_id = attachments.node_id
    CROSS JOIN conversations ON conversations.conversation_id = messages.conversation_id
    WHERE attachment_search MATCH ?1
        AND conversations.deleted_at IS NULL
        AND (?2 IS NULL OR messages.created_at >= ?2)
        AND (?3 IS NULL OR messages.created_at < ?3)
        AND ?4 IS NULL
        AND (?6 IS NULL OR folder_id = ?6)
        AND (?7 IS NULL OR archived = ?7))
    WHERE NOT from_folder OR place = 1
    ORDER BY message_number DESC
    LIMIT ?5
"""
