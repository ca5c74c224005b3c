"""Rows of the recently deleted conversations. No Qt, no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.conversation.deletion import DELETED_KEPT_S
from app.conversation.tree import DeletedConversation
from app.words import deleted as words
from engine.types import ConversationId

_DAY_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class DeletedRow:
    """One deleted conversation in the list."""

    conversation_id: ConversationId
    title: str
    left: str  # time until the conversation is removed for good, such as "29 days left"


def deleted_rows(deleted: Sequence[DeletedConversation], now: float) -> list[DeletedRow]:
    """Return a row for each deleted conversation, in the same order. `now` is in Unix seconds."""
    return [
        DeletedRow(
            one.summary.conversation_id,
            one.summary.title,
            words.days_left(max(1, round((one.deleted_at + DELETED_KEPT_S - now) / _DAY_S))),
        )
        for one in deleted
    ]
