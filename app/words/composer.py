"""Texts of the composer and of the notes above and below it."""

from __future__ import annotations

from typing import Final

from app.words import computer, units

MESSAGE: Final = "Message"
SEND: Final = "Send"

THINKING_TIP: Final = "Think before answering"
THINKING_DEFAULT: Final = "Thinking: Auto"
THINKING_ON: Final = "Thinking: On"
THINKING_OFF: Final = "Thinking: Off"
DEFAULT: Final = "Auto"  # menu entry: use the model's default for thinking
ON: Final = "On"
OFF: Final = "Off"
KEEP_THOUGHTS: Final = "Keep Earlier Thinking"
KEEP_THOUGHTS_NOTE: Final = "Faster next turn, uses more context"

NOT_SENT_BEFORE_END: Final = (
    "Your message was not sent: Rejoinder closed before a model began to read it."
    " It is in the message field, so you can send it again."
)
QUEUED: Final = "Sent when this answer is finished"
TAKE_BACK: Final = "Edit Before Sending"
MOVE_TO_NEW_CHAT: Final = "Move Message to a New Chat"
PRIVATE: Final = f"Runs on {computer.THIS_COMPUTER}. Nothing leaves it."
PRIVATE_ON_MACS: Final = "Runs on your Macs. Nothing leaves them."


def answers_ahead(count: int) -> str:
    """Return a note with the number of answers ahead in the queue. It fits beside a button."""
    return f"{count:,} ahead"


def queued_spoken(message: str) -> str:
    return f"{QUEUED}: {message}"


def not_sent(*, title: str, problem: str) -> str:
    """Return a notice that the message of another chat was not sent.

    title: the title of the other chat. problem: a full sentence.
    """
    return f"“{title}” was not sent. {problem}"


# the subjects of too_long()
THIS_CHAT: Final = "This chat"
CHAT_TO_HERE: Final = "The chat up to here"  # in the editor of a message
THIS_TEXT: Final = "This text"


def too_long(*, subject: str, model_name: str, num_tokens: str, limit: str) -> str:
    return f"{subject} is too long for {model_name}: {num_tokens} of {limit}."


def context_used(share: str) -> str:
    return f"This chat uses {share} of context."


def can_read(model_name: str, limit: str, *, is_chat: bool) -> str:
    """Return a sentence about a model with a longer context. is_chat: False for new text alone."""
    return f"{model_name} can read this {'chat' if is_chat else 'text'} ({limit})."


def will_read_chat(model_name: str, num_tokens: int, time: str) -> str:
    """Return a note about a chat of another model. time: a duration, or an empty string."""
    return f"{model_name} will read this chat with your next message: {_about(num_tokens, time)}."


def will_read(model_name: str, num_tokens: int, time: str) -> str:
    """Return a note about a long message or chat. time: a duration, or an empty string."""
    return f"{model_name} will first read {_about(num_tokens, time)}."


def _about(num_tokens: int, time: str) -> str:
    tokens = f"about {units.tokens(num_tokens)}"
    return f"{tokens}, {time}" if time else tokens
