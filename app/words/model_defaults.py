"""Texts of the sheet with the options of one model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PRESET: Final = "New chats begin with"
THINKING: Final = "Thinking"
# Choices of thinking in new chats; None: the model's own default.
THINKING_CHOICES: Final[Mapping[object, str]] = {None: "Default", True: "On", False: "Off"}
NEW_CHATS_NOTE: Final = "Both apply to new chats. No chat that has begun changes."
CONTEXT: Final = "Longest chat"
CONTEXT_NAME: Final = "Longest chat in tokens"
CONTEXT_NOTE: Final = "Tokens of question and answer together; empty: as long as the model allows."
MEMORY: Final = "Memory of chats"
# Choices of the bits per attention K/V value; 0: not quantised.
MEMORY_CHOICES: Final[Mapping[object, str]] = {0: "Full", 8: "8-bit", 4: "4-bit"}
MEMORY_NOTE: Final = (
    "K/V in 8 bits take half the room and in 4 bits a quarter, so more chats stay ready. Answers "
    "may differ slightly."
)
AT_NEXT_LOAD: Final = "These two apply when the model is loaded."
DONE: Final = "Done"


def title(model_name: str) -> str:
    return f"Defaults of {model_name}"
