"""Conversion between conversations and rows of the tables conversations and shown_versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from app.conversation.placement import FolderId, Placement
from app.conversation.tree import (
    Conversation,
    ConversationSummary,
    DeletedConversation,
    DraftEdit,
    NodeId,
    Setup,
)
from app.store.codec import from_json_or_none, to_json
from engine.types import ConversationId

ROOT = ""  # value of the column `parent` for a first message, because a primary key cannot be NULL


class ConversationRecord(NamedTuple):
    """A row of the table conversations; the fields are its columns."""

    conversation_id: str
    title: str
    title_is_manual: int
    created_at: float
    updated_at: float
    deleted_at: float | None
    setup: str
    system_prompt: str
    read_system_prompt: str | None
    draft: str
    keep_ready: int
    draft_was_sent: int
    draft_edits: str
    without_documents: int
    chosen_model: str


class SummaryRow(NamedTuple):
    """The columns of the table conversations that the list of conversations needs."""

    conversation_id: str
    title: str
    updated_at: float
    keep_ready: int
    created_at: float
    pinned: int
    archived: int
    folder_id: str | None


class DeletedColumns(NamedTuple):
    """The columns of the table conversations that the list of deleted conversations needs."""

    conversation_id: str
    title: str
    updated_at: float
    keep_ready: int
    created_at: float
    pinned: int
    archived: int
    folder_id: str | None
    deleted_at: float


class ShownRow(NamedTuple):
    """A row of the table shown_versions: the version on show below a parent message."""

    conversation_id: str
    parent: str
    node_id: str


@dataclass(frozen=True, slots=True)
class _DraftEdits:
    """The value of the column draft_edits."""

    edits: tuple[DraftEdit, ...] = ()


def conversation_row(conv: Conversation) -> ConversationRecord:
    return ConversationRecord(
        conversation_id=conv.conversation_id,
        title=conv.title,
        title_is_manual=conv.title_is_manual,
        created_at=conv.created_at,
        updated_at=conv.updated_at,
        deleted_at=conv.deleted_at,
        setup=to_json(conv.setup),
        system_prompt=conv.system_prompt,
        read_system_prompt=conv.read_system_prompt,
        draft=conv.draft,
        keep_ready=conv.keep_ready,
        draft_was_sent=conv.draft_was_sent,
        draft_edits=to_json(_DraftEdits(conv.draft_edits)),
        without_documents=conv.without_documents,
        chosen_model=conv.chosen_model,
    )


def conversation_from(row: ConversationRecord) -> Conversation:
    """Return the conversation that a row describes, without its messages."""
    return Conversation(
        conversation_id=ConversationId(row.conversation_id),
        title=row.title,
        title_is_manual=bool(row.title_is_manual),
        created_at=row.created_at,
        updated_at=row.updated_at,
        deleted_at=row.deleted_at,
        setup=from_json_or_none(Setup, row.setup) or Setup(),
        system_prompt=row.system_prompt,
        read_system_prompt=row.read_system_prompt,
        draft=row.draft,
        keep_ready=bool(row.keep_ready),
        draft_was_sent=bool(row.draft_was_sent),
        draft_edits=(from_json_or_none(_DraftEdits, row.draft_edits) or _DraftEdits()).edits,
        without_documents=bool(row.without_documents),
        chosen_model=row.chosen_model,
    )


def summary_from(row: SummaryRow) -> ConversationSummary:
    return ConversationSummary(
        conversation_id=ConversationId(row.conversation_id),
        title=row.title,
        updated_at=row.updated_at,
        keep_ready=bool(row.keep_ready),
        created_at=row.created_at,
        placement=Placement(
            pinned=bool(row.pinned),
            archived=bool(row.archived),
            folder_id=None if row.folder_id is None else FolderId(row.folder_id),
        ),
    )


def deleted_from(row: DeletedColumns) -> DeletedConversation:
    summary = summary_from(SummaryRow._make(row[:-1]))
    return DeletedConversation(summary=summary, deleted_at=row.deleted_at)


def shown_row(conversation_id: ConversationId, parent: NodeId | None, node_id: NodeId) -> ShownRow:
    return ShownRow(conversation_id=conversation_id, parent=parent or ROOT, node_id=node_id)


def shown_from(row: ShownRow) -> tuple[NodeId | None, NodeId]:
    return NodeId(row.parent) if row.parent != ROOT else None, NodeId(row.node_id)
