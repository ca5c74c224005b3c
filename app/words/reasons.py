"""Texts of the window that explains why a prompt was read."""

from __future__ import annotations

from typing import Final

from app.words import units


def heading(tokens: str) -> str:
    return f"The prompt of this answer has {tokens}."


NOTHING_READ: Final = "Nothing was read: the whole prompt was restored."


def from_memory(tokens: str) -> str:
    return f"{tokens} restored from memory"


def from_disk(tokens: str) -> str:
    return f"{tokens} restored from disk"


def read_again(tokens: str) -> str:
    return f"{tokens} read again"


def read_first(tokens: str) -> str:
    return f"{tokens} read for the first time"


def not_read(tokens: str) -> str:
    return f"{tokens} not read, because the answer was stopped"


# Reasons. Each one is a sentence about tokens, whose number stands before it.
NEW: Final = "No model had read this part of the chat before."
NOT_KEPT: Final = "The state of this text was neither in memory nor on disk."
INTERRUPTED: Final = "An answer was cut off before its state was saved."
MODEL_CHANGED: Final = "Another model had read this text. Each model has to read a chat itself."
EDITED: Final = (
    "A message changed. The chat was read from the last saved state before the change on."
)
ADDED: Final = "Text was added to a message."
SYSTEM_CHANGED: Final = (
    "The system prompt changed. It stands before all messages, so the chat after it was read."
)
OPTIONS_CHANGED: Final = "The thinking options changed, and with them the text of the prompt."
TOOLS_CHANGED: Final = "The list of tools changed, and with it the text of the prompt."
THINKING_DROPPED: Final = (
    "The model’s template left out earlier thinking, so the answer after it was read again."
)
TEXT_RENDERED: Final = "The model’s template writes an earlier message differently than before."
MADE_ROOM: Final = "The saved state of this text had to make room."
CHAT_TOO_LARGE: Final = "The chat is larger than the memory for chats."
MODEL_RELOADED: Final = (
    "The model was loaded again. When it was unloaded, its memory for chats was emptied."
)
PROMPT_END: Final = "The end of the prompt was read to begin the answer."
FAULTY: Final = "A saved state was damaged, and was dropped."

# Advice that avoids a reason.
DISK_IS_OFF: Final = (
    "Chats are not kept on disk now. Kept there, they can be restored when the model was unloaded"
    " or Rejoinder was restarted."
)
SAME_MODEL: Final = "If one model answers the whole chat, this does not happen."
PROMPT_FIRST: Final = "If it is set before the first message, nothing is read again."
OPTIONS_FIRST: Final = "If they are set before the first message, nothing is read again."
KEEP_THINKING: Final = (
    "With Keep Earlier Thinking it stays in the prompt. After you turn it on, the next answer reads"
    " the chat from the first dropped thought on."
)
THINKING_IS_KEPT: Final = "Keep Earlier Thinking is on now, so it stays in the prompt."
_OTHERS_FIRST = "other chats make room first. More room for chats helps too."
KEEP_READY: Final = f"If this chat is kept in memory, {_OTHERS_FIRST}"
IS_KEPT_READY: Final = f"This chat is kept in memory now, so {_OTHERS_FIRST}"
LARGER_ROOM: Final = (
    "A shorter chat, 8-bit or 4-bit chat memory in the model’s defaults, or a smaller model helps."
)
STAY_LOADED: Final = "While a model stays loaded, its chats stay in memory."

SYSTEM_PROMPT: Final = "System prompt"


def message_link(number: int, beginning: str) -> str:
    """Return the text of the link to a message. beginning: its first words."""
    return f"Message {number}: “{beginning}”" if beginning else f"Message {number}"


def more_messages(count: int) -> str:
    return "And 1 more message" if count == 1 else f"And {count:,} more messages"


def tokens_read(count: int, *, is_again: bool) -> str:
    """Return the title of a reason."""
    tokens = units.tokens(count)
    return f"{tokens} read again" if is_again else f"{tokens} read"
