"""Rows of the recently deleted conversations and folders. No Qt, no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.conversation.deletion import DELETED_KEPT_S
from app.conversation.folder import Folder, FolderColor
from app.conversation.tree import DeletedConversation
from app.words import deleted as words

_DAY_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class DeletedRow:
    """One deleted conversation or folder in the list."""

    item: DeletedConversation | Folder
    title: str
    left: str  # time until the item is removed for good, such as "29 days left"
    color: FolderColor | None  # of a folder


def deleted_rows(items: Sequence[DeletedConversation | Folder], now: float) -> list[DeletedRow]:
    """Return a row for each deleted item, in the same order. `now` is in Unix seconds."""
    return [
        DeletedRow(
            item,
            item.name if isinstance(item, Folder) else item.summary.title,
            _left((item.deleted_at or 0.0) + DELETED_KEPT_S - now),
            item.color if isinstance(item, Folder) else None,
        )
        for item in items
    ]


def _left(seconds: float) -> str:
    return words.days_left(max(1, round(seconds / _DAY_S)))
