"""A message that returns to the user, because it was not sent or not started. Pure values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from app.conversation.attachments import Attachment
from app.conversation.tree import NodeId
from engine.problem import Problem
from engine.types import ConversationId


class RefusedEdit(NamedTuple):
    """An edit that the engine did not start, to put back into the editor of its message."""

    node_id: NodeId  # the message that was edited
    text: str  # its new text
    files: tuple[Attachment, ...]  # its new files


@dataclass(frozen=True, slots=True)
class Refusal:
    """A message that was not sent, or a turn that the engine did not start."""

    conversation_id: ConversationId
    text: str  # the user's text, also of a queued message, to put back into the composer
    # The error. None: the user stopped the turn, or took a queued message back.
    problem: Problem | None
    edit: RefusedEdit | None = None  # the edit, if the turn was one; its text is not in `text`
