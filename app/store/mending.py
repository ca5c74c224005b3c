"""Repair of rescued rows, so that every chat can be opened.

Values that cannot be understood are replaced, and each message gets a parent: a chat has its
messages in order of their numbers, parents first, and the roles alternate.
"""

from __future__ import annotations

import logging
import sqlite3
import uuid

from app.store.message_rows import COLUMNS, node_from
from app.words import problems as words
from engine.types import Role

log = logging.getLogger(__name__)

_FIGURES = "generation = NULL, finish_reason = NULL, problem = NULL, token_ids = NULL"
# Messages without a parent that comes before them in their chat and has the other role.
_ORPHANS = """
    SELECT message_number, conversation_id, parent, role, created_at FROM messages AS orphan
    WHERE (parent IS NOT NULL OR role = 'assistant') AND NOT EXISTS (
        SELECT 1 FROM messages AS above
        WHERE above.node_id = orphan.parent AND above.conversation_id = orphan.conversation_id
        AND above.message_number < orphan.message_number AND above.role <> orphan.role
    )
    ORDER BY message_number
"""


def mend(target: sqlite3.Connection) -> tuple[int, int]:
    """Repair the rows of a rescued database.

    Return the number of chats whose title and settings are lost, and the number of placeholders
    that were added for lost messages.
    """
    _replace_unknown_values(target)
    _remove_unreadable(target)
    num_nameless = _add_lost_chats(target)
    num_placeholders = _add_placeholders(target)
    _mend_references(target)
    _mend_shown(target)
    return num_nameless, num_placeholders


def _replace_unknown_values(target: sqlite3.Connection) -> None:
    target.execute(
        "UPDATE messages SET status = 'complete'"
        " WHERE status NOT IN ('complete', 'streaming', 'stopped', 'failed')"
    )
    # The role of a message is the other one than that of the message above it.
    target.execute(
        "UPDATE messages SET role = iif((SELECT role FROM messages AS above"
        " WHERE above.node_id = messages.parent) = 'user', 'assistant', 'user')"
        " WHERE role NOT IN ('user', 'assistant')"
    )


def _remove_unreadable(target: sqlite3.Connection) -> None:
    """Remove the figures of messages that cannot be understood, or the whole message."""
    # COLUMNS is a constant.
    query = f"SELECT message_number, {', '.join(COLUMNS)} FROM messages"  # noqa: S608
    where = " WHERE message_number = ?"
    damaged = [row[0] for row in target.execute(query) if not _is_valid(row[1:])]
    for number in damaged:
        target.execute(f"UPDATE messages SET {_FIGURES}{where}", (number,))  # noqa: S608
        if not _is_valid(target.execute(query + where, (number,)).fetchone()[1:]):
            target.execute(f"DELETE FROM messages{where}", (number,))  # noqa: S608


def _is_valid(row: tuple[str | bytes | int | float | None, ...]) -> bool:
    try:
        node_from(row)
    except (ValueError, TypeError, KeyError) as error:
        log.warning("a message cannot be understood: %s", type(error).__name__)
        return False
    return True


def _add_lost_chats(target: sqlite3.Connection) -> int:
    """Add a chat for messages whose chat could not be read. Return the number of such chats."""
    return target.execute(
        "INSERT INTO conversations (conversation_id, title, title_is_manual, created_at,"
        " updated_at, setup, system_prompt, draft)"
        " SELECT conversation_id, ?, 0, min(created_at), max(created_at), '{}', '', ''"
        " FROM messages WHERE conversation_id NOT IN (SELECT conversation_id FROM conversations)"
        " GROUP BY conversation_id",
        (words.RESCUED_CHAT,),
    ).rowcount


def _add_placeholders(target: sqlite3.Connection) -> int:
    """Add a message in the place of each lost one that has replies. Return their number."""
    orphans = target.execute(_ORPHANS).fetchall()
    before = target.total_changes
    num_moved = 0
    added: dict[tuple[str, str | None], str] = {}
    for number, conversation_id, parent, role, created_at in orphans:
        place = (conversation_id, parent)
        if place not in added:
            lost_role = Role.ASSISTANT if role == Role.USER else Role.USER
            added[place] = _add_lost(target, conversation_id, parent, number, lost_role, created_at)
        if added[place] != parent:
            num_moved += target.execute(
                "UPDATE messages SET parent = ? WHERE message_number = ?", (added[place], number)
            ).rowcount
    return target.total_changes - before - num_moved


def _add_lost(
    target: sqlite3.Connection,
    conversation_id: str,
    node_id: str | None,
    before: int,
    role: Role,
    created_at: float,
) -> str:
    """Add a placeholder before a message, below the message that probably was above it.

    The placeholder has the id of the lost message, unless another message has it.
    """
    is_taken = target.execute("SELECT 1 FROM messages WHERE node_id = ?", (node_id,)).fetchone()
    own_id = uuid.uuid4().hex if node_id is None or is_taken else node_id
    number = _number_of(target, node_id, before)
    above = target.execute(
        "SELECT node_id FROM messages WHERE conversation_id = ? AND message_number < ?"
        " AND role <> ? AND deleted_at IS NULL ORDER BY message_number DESC LIMIT 1",
        (conversation_id, number, role),
    ).fetchone()
    parent = above[0] if above else None
    if above is None and role is Role.ASSISTANT:
        parent = _add_lost(target, conversation_id, None, number, Role.USER, created_at)
    target.execute(
        "INSERT INTO messages (message_number, node_id, conversation_id, parent, role, status,"
        " created_at, content, reasoning) VALUES (?, ?, ?, ?, ?, 'complete', ?, ?, '')",
        (number, own_id, conversation_id, parent, role, created_at, words.LOST_MESSAGE),
    )
    return own_id


def _number_of(target: sqlite3.Connection, node_id: str | None, before: int) -> int:
    """Return the number of a lost message, or the highest free one below `before`."""
    taken = "SELECT 1 FROM messages WHERE message_number = ?"
    noted = target.execute(
        "SELECT message_number FROM had_messages WHERE node_id = ? AND message_number < ?",
        (node_id, before),
    ).fetchone()
    if noted and not target.execute(taken, noted).fetchone():
        return noted[0]
    number = before - 1
    while target.execute(taken, (number,)).fetchone():
        number -= 1
    return number


def _mend_references(target: sqlite3.Connection) -> None:
    """Clear references of chats to rows that are missing, and remove other rows that have any."""
    for table, rowid, _, key in target.execute("PRAGMA foreign_key_check").fetchall():
        if rowid is None:  # shown_versions
            continue
        keys = target.execute(f"PRAGMA foreign_key_list({table})").fetchall()
        column = next(row[3] for row in keys if row[0] == key)
        # The names come from the new database.
        if table == "conversations":
            target.execute(f"UPDATE {table} SET {column} = NULL WHERE rowid = ?", (rowid,))  # noqa: S608
        else:
            target.execute(f"DELETE FROM {table} WHERE rowid = ?", (rowid,))  # noqa: S608


def _mend_shown(target: sqlite3.Connection) -> None:
    """Show the newest version wherever the version on show is not known, or is the newest."""
    target.execute(
        "DELETE FROM shown_versions WHERE NOT EXISTS (SELECT 1 FROM messages AS shown"
        " WHERE shown.node_id = shown_versions.node_id AND shown.deleted_at IS NULL"
        " AND shown.conversation_id = shown_versions.conversation_id"
        " AND coalesce(shown.parent, '') = shown_versions.parent"
        " AND EXISTS (SELECT 1 FROM messages AS newer"
        "  WHERE newer.conversation_id = shown.conversation_id AND newer.parent IS shown.parent"
        "  AND newer.deleted_at IS NULL AND newer.message_number > shown.message_number))"
    )
