"""Texts about the titles of chats that the model writes."""

from __future__ import annotations

from typing import Final

# The message for the model. It is never shown. A small model repeats a longer instruction.
QUESTION: Final = (
    "Write a short title for this conversation, in its language. Answer with the title only."
)
