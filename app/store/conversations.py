"""The store of conversations: saves and loads whole Conversation values in the SQLite database.

The store lane (bridge/store_lane.py) uses the store on its worker thread. A save compares the new
value with the one that was saved last and writes only the differing rows. While a reply streams,
save_text writes its text so far. The store caches nothing: the store lane keeps the values that
were saved last.

A deleted conversation or message only gets a time in the column deleted_at. It stays in the
database for 30 days, so that it can be restored. `purge` then removes it for good. The app purges
only when it opens the store, because no conversation is in memory then. So no conversation in
memory has a message that was purged. `remove` removes a deleted conversation at once, when the user
asks for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from app.conversation.deletion import DELETED_KEPT_S
from app.conversation.filed import FiledConversation
from app.conversation.tree import (
    Conversation,
    ConversationSummary,
    DeletedConversation,
    NodeId,
)
from app.store import statements
from app.store.conversation_rows import (
    DeletedColumns,
    SummaryRow,
    deleted_from,
    summary_from,
)
from app.store.database import BUSY_TIMEOUT_S, Database
from app.store.errors import DatabaseDamagedError, DatabaseFullError
from app.store.folders import FolderStore
from app.store.loading import load_conversation
from app.store.opening import OpenedDatabase, open_database, open_to_read
from app.store.presets import PresetStore
from app.store.rescue import Rescued
from app.store.search import SLICE_MESSAGES, MessageSearch
from app.store.tables import ConversationTables
from app.store.unseen import UnseenStore
from app.words import problems as words
from engine.problem import Problem
from engine.types import ConversationId

# deleted_at of a conversation whose import has not ended, or whose rows are being removed. Nothing
# shows it, and the next start removes it.
UNFINISHED_AT = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedStore:
    """An open store, and what its opening did."""

    store: ConversationStore
    is_read_only: bool = False  # True while the disk is full
    is_checked: bool = True  # False if the file may be damaged: check_database() finds that out
    problem: Problem | None = None  # to show, if a damaged database was rescued
    purged: tuple[ConversationId, ...] = ()  # old deletions that were removed for good


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFigures:
    """Numbers that describe the database, without any of its texts."""

    file_bytes: int
    num_chats: int  # deleted ones included
    num_deleted: int
    num_messages: int
    num_unindexed: int  # messages that the search does not find yet


def open_store(path: Path, *, now: float, busy_timeout_s: float = BUSY_TIMEOUT_S) -> OpenedStore:
    """Open the database, mark interrupted replies as stopped, and purge old deletions.

    If the disk is full, the store is opened to read only, and its writes raise DatabaseFullError.

    The caller holds the InstanceLock: only one process may open the store.

    Raises:
        StoreError: the database cannot be used.
    """
    opened = open_database(path, busy_timeout_s=busy_timeout_s)
    try:
        return _tidied(opened, now)
    except DatabaseDamagedError:
        # The check did not find the damage, but Database.note_damage() has recorded it now. So the
        # second opening rescues the file.
        return _tidied(open_database(path, busy_timeout_s=busy_timeout_s), now)
    except DatabaseFullError:
        return _tidied(open_to_read(path, busy_timeout_s=busy_timeout_s), now)


def _tidied(opened: OpenedDatabase, now: float) -> OpenedStore:
    store = ConversationStore(opened.database)
    if store.is_read_only:
        return OpenedStore(store=store, is_read_only=True)
    try:
        store.stop_interrupted()
        purged = store.purge(now=now)
    except BaseException:
        store.close()
        raise
    problem = _rescue_report(opened.kept_aside, opened.rescued) if opened.kept_aside else None
    is_checked = opened.database.is_checked
    return OpenedStore(store=store, is_checked=is_checked, problem=problem, purged=purged)


def _rescue_report(kept: Path, rescued: Rescued | None) -> Problem:
    """Return what a rescue saved. `rescued`: None if the app was killed right after the rescue."""
    if rescued is None:
        cause = words.kept_aside(kept.name)
    else:
        missing = words.lost_messages(rescued.num_missing)
        unknown = words.lost_unknown(rescued.num_messages)
        cause = words.rescued(
            unknown if rescued.may_lack_more else missing,
            garbled=rescued.num_garbled,
            changed=rescued.num_changed,
            nameless=rescued.num_nameless,
            backup=rescued.backup.name if rescued.backup else "",
            kept=kept.name,
        )
    return Problem(title=words.STORE_RESCUED, cause=cause, advice="", details=str(kept))


def _integer(value: object) -> int:
    assert isinstance(value, int)
    return value


class ConversationStore:
    """The conversations and presets of a data folder. Use on the store thread only.

    Each method that writes does so in one transaction. It raises StoreError and changes nothing if
    the disk is full or the database cannot be used.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.tables = ConversationTables(database)
        self.presets = PresetStore(database)
        self.search = MessageSearch(database)
        self.folders = FolderStore(database)
        self.unseen = UnseenStore(database)

    def close(self) -> None:
        self._database.close()

    def transaction(self) -> AbstractContextManager[None]:
        """Return a context for several writes that are one transaction."""
        return self._database.transaction()

    def note_damage(self) -> None:
        """Let the next start rescue the database, because a backup found damage in it."""
        self._database.note_damage()

    @property
    def is_read_only(self) -> bool:
        """True if the disk was full when the database was opened."""
        return self._database.is_read_only

    @property
    def has_room(self) -> bool:
        """True if the disk has room for some changes. This writes to the disk."""
        return self._database.has_room

    @property
    def is_checked(self) -> bool:
        """True if no check of the whole file is due."""
        return self._database.is_checked

    def note_checked(self) -> None:
        """Note that the whole database was read without finding damage."""
        self._database.is_checked = True

    def create(self, conv: Conversation) -> None:
        """Write a conversation that is not stored yet."""
        with self._database.transaction():
            self.tables.insert(conv)

    def save(self, conv: Conversation, *, since: Conversation) -> None:
        """Write the changes of a conversation relative to `since`, the value that was saved last.

        After a failed save, pass the same `since` again, so that no change is lost. If only
        save_text wrote new text of a streaming reply, that text stays.
        """
        assert conv.conversation_id == since.conversation_id
        assert since.nodes.keys() <= conv.nodes.keys(), "messages are never removed"
        # Nodes are immutable, so an unchanged node is the same object in both values.
        changed = [
            node for node in conv.nodes.values() if since.nodes.get(node.node_id) is not node
        ]
        with self._database.transaction():
            self.tables.update(conv, since=since)
            self.tables.write_nodes(conv.conversation_id, changed)
            # After the messages: a sent attachment then always has a row, so its text stays.
            if conv.draft_attachments != since.draft_attachments:
                self.tables.attachments.set_draft(conv.conversation_id, conv.draft_attachments)
            if conv.shown != since.shown:
                self.tables.write_shown(conv)

    def save_text(self, reply_id: NodeId, *, content: str, reasoning: str) -> None:
        """Write the text of a streaming reply so far.

        If the stored reply has ended, the SQL statement changes nothing. A late save_text therefore
        cannot overwrite the final text.
        """
        self._database.run(statements.SAVE_TEXT, (content, reasoning, reply_id))

    def delete(self, conversation_id: ConversationId, *, now: float) -> None:
        """Mark a conversation as deleted. Until purge() removes it, restore() can undo this."""
        self.set_deleted_at(conversation_id, now)

    def delete_all(self, conversation_ids: Iterable[ConversationId], *, now: float) -> None:
        """Mark conversations as deleted: all of them, or none if an error occurs."""
        with self._database.transaction():
            rows = ((now, conversation_id) for conversation_id in conversation_ids)
            self._database.run_many(statements.SET_DELETED_AT, rows)

    def restore(self, conversation_id: ConversationId) -> None:
        """Remove the mark of delete(). An unmarked conversation does not change."""
        self.set_deleted_at(conversation_id, None)

    def set_deleted_at(self, conversation_id: ConversationId, deleted_at: float | None) -> None:
        self._database.run(statements.SET_DELETED_AT, (deleted_at, conversation_id))

    def restore_all(self, conversation_ids: Iterable[ConversationId]) -> None:
        """Remove the marks of delete_all()."""
        with self._database.transaction():
            rows = ((None, conversation_id) for conversation_id in conversation_ids)
            self._database.run_many(statements.SET_DELETED_AT, rows)

    def mark_removed(self, conversation_ids: Iterable[str]) -> None:
        """Remove deleted conversations from the list of the recently deleted ones, for good.

        remove_slice() removes their rows, or else the next start does (purge).
        """
        with self._database.transaction():
            rows = ((UNFINISHED_AT, conversation_id) for conversation_id in conversation_ids)
            self._database.run_many(statements.MARK_REMOVED, rows)

    def remove_slice(self, conversation_id: ConversationId) -> bool:
        """Remove rows of a conversation after mark_removed(). Return True if more are left."""
        with self._database.transaction():
            marked = (conversation_id, UNFINISHED_AT)
            if self._database.run(statements.REMOVE_MESSAGES, (*marked, SLICE_MESSAGES)):
                return True
            self.remove_unfinished((conversation_id,))
            return False

    def remove(self, conversation_id: ConversationId) -> None:
        """Remove a conversation for good at once, if it is marked as deleted."""
        self.mark_removed((conversation_id,))
        while self.remove_slice(conversation_id):
            pass

    def remove_unfinished(self, conversation_ids: Iterable[str]) -> None:
        """Remove those of the conversations that have the mark UNFINISHED_AT."""
        ids = json.dumps(list(conversation_ids))
        self._database.run(statements.REMOVE_DELETED_AT, (UNFINISHED_AT, ids))

    def purge(self, *, now: float) -> tuple[ConversationId, ...]:
        """Remove for good the conversations and messages that were deleted at least 30 days ago.

        The messages below a removed message are removed too, and so are all rows of a removed
        conversation (ON DELETE CASCADE). Return the removed conversations.
        """
        long_ago = (now - DELETED_KEPT_S,)
        with self._database.transaction():
            if self._database.run(statements.PURGE_MESSAGES, long_ago):
                self._database.run(statements.PURGE_SHOWN)
            self.folders.purge(deleted_before=now - DELETED_KEPT_S)
            rows = self._database.rows(statements.PURGE, long_ago)
            return tuple(ConversationId(str(row[0])) for row in rows)

    def stop_interrupted(self) -> int:
        """Mark as stopped and unseen all replies that a crash interrupted. Return their number.

        Their finish reason is ERROR, unlike that of replies that the user has stopped. The saved
        part of the text stays. Call this method when no reply is streaming.
        """
        with self._database.transaction():
            self.unseen.mark_interrupted()
            return self._database.run(statements.STOP_INTERRUPTED)

    def summaries(self) -> tuple[ConversationSummary, ...]:
        """Return the summaries of all conversations that are not deleted, newest first."""
        rows = self._database.rows(statements.SELECT_SUMMARIES)
        return tuple(summary_from(SummaryRow._make(row)) for row in rows)

    def deleted(self) -> tuple[DeletedConversation, ...]:
        """Return the conversations that are marked as deleted, the newest deletion first."""
        rows = self._database.rows(statements.SELECT_DELETED)
        return tuple(deleted_from(DeletedColumns._make(row)) for row in rows)

    def figures(self) -> StoreFigures:
        """Return the numbers for the diagnostics file."""
        ((size, chats, deleted, messages, unindexed),) = self._database.rows(statements.FIGURES)
        return StoreFigures(
            file_bytes=_integer(size),
            num_chats=_integer(chats),
            num_deleted=_integer(deleted),
            num_messages=_integer(messages),
            num_unindexed=_integer(unindexed),
        )

    def ids(self) -> frozenset[ConversationId]:
        """Return the ids of all conversations, also of those that are marked as deleted."""
        rows = self._database.rows(statements.SELECT_IDS)
        return frozenset(ConversationId(str(row[0])) for row in rows)

    def picture_digests(self, conversation_id: ConversationId | None = None) -> frozenset[str]:
        """Return the digests in the names of all picture files of a conversation, or of all."""
        return self.tables.attachments.picture_digests(conversation_id)

    def has(self, conversation_id: ConversationId) -> bool:
        """Return True if a conversation is stored. It may be marked as deleted."""
        return bool(self._database.rows(statements.HAS_CONVERSATION, (conversation_id,)))

    def has_elsewhere(self, node_ids: Iterable[NodeId], conversation_id: ConversationId) -> bool:
        """Return True if another conversation has a message with one of these ids."""
        ids = json.dumps(list(node_ids))
        ((taken,),) = self._database.rows(statements.TAKEN_IDS, (conversation_id, ids))
        return bool(taken)

    def load(self, conversation_id: ConversationId) -> Conversation:
        """Return a conversation with all its messages, even if it is marked as deleted.

        Raises:
            ConversationMissingError: the conversation was removed for good, or never stored.
        """
        return load_conversation(self._database, self.tables.attachments, conversation_id)

    def load_filed(self, conversation_id: ConversationId) -> FiledConversation:
        """Return a conversation with its place in the list and its folder.

        Raises:
            ConversationMissingError: the conversation was removed for good, or never stored.
        """
        return self.folders.filed(self.load(conversation_id))
