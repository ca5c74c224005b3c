"""A message that was not sent: its text and files go back to the draft."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from app.conversation.attachments import Attachment
from app.conversation.tree import Conversation


class Unsent(NamedTuple):
    """A message that is queued, or that was taken back."""

    text: str = ""
    files: tuple[Attachment, ...] = ()


NOTHING_UNSENT: Final = Unsent()


def with_unsent(value: Conversation, unsent: Unsent) -> Conversation:
    """Return a conversation with an unsent message in front of its draft."""
    return replace(
        value,
        draft=join_texts(unsent.text, value.draft),
        draft_attachments=(*unsent.files, *value.draft_attachments),
    )


def join_texts(earlier: str, later: str) -> str:
    """Join two texts with a blank line between them. Skip a text that is blank."""
    return "\n\n".join(text for text in (earlier, later) if text.strip())
