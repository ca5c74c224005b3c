"""A conversation with its folder and its place in the list, as in a JSON export. Frozen values."""

from __future__ import annotations

from dataclasses import dataclass

from app.conversation.folder import Folder
from app.conversation.placement import NO_PLACE, Placement
from app.conversation.tree import Conversation


@dataclass(frozen=True, slots=True, kw_only=True)
class FiledConversation:
    """A conversation on its way to or from a file."""

    conversation: Conversation
    placement: Placement = NO_PLACE
    folder: Folder | None = None  # the one that `placement` names; None if that is deleted
