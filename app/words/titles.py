"""Texts about the titles of chats that the model writes."""

from __future__ import annotations

from typing import Final

# The message for the model. It is never shown.
QUESTION: Final = (
    "Write a title for this conversation: at most six words, in the language of the conversation, "
    "without quotation marks. Answer with the title only."
)
