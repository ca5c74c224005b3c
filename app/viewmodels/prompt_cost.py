"""The note below the system prompt: what its change makes the model read. No Qt, no I/O."""

from __future__ import annotations

from app.conversation.tree import Conversation, has_messages
from app.viewmodels import figures
from app.viewmodels.models import ModelStatus
from app.viewmodels.notes import MANY_TOKENS
from app.viewmodels.reading import ToRead
from app.words import inspector as words


def has_new_prompt(conversation: Conversation) -> bool:
    """Return True if a conversation with messages has another system prompt than its last turn."""
    read = conversation.read_system_prompt or ""
    return has_messages(conversation) and conversation.system_prompt != read


def prompt_cost(
    conversation: Conversation,
    status: ModelStatus,
    num_tokens: int | None,
    to_read: ToRead | None,
) -> str:
    """Return the note, or an empty string if the model reads little or nothing.

    Args:
        conversation: the conversation on show.
        status: the model in use.
        num_tokens: size of the next prompt; None if it is not known.
        to_read: the tokens of it that the model will read; None if they are not known.
    """
    if status.facts is None or not has_messages(conversation):
        return ""
    if has_new_prompt(conversation):
        if to_read is None or to_read.num_tokens < MANY_TOKENS:
            return ""
        return words.prompt_changed(figures.about(to_read.num_tokens), to_read.time)
    if num_tokens is None or num_tokens < MANY_TOKENS:
        return ""
    return words.prompt_change_reads(figures.about(num_tokens))
