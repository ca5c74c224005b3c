"""Texts of the sheet with the options of one model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

THINKING: Final = "Thinking"
# Choices of thinking in new chats; None: the model's own default.
THINKING_CHOICES: Final[Mapping[object, str]] = {None: "Auto", True: "On", False: "Off"}
NEW_CHATS_NOTE: Final = "For new chats. Existing chats don’t change."
CONTEXT: Final = "Context length"
CONTEXT_NAME: Final = "Context length in tokens"
CONTEXT_NOTE: Final = "The most tokens of one chat. Leave it empty for the model’s maximum."
MEMORY: Final = "Chat memory"
# Choices of the bits per attention K/V value; 0: not quantised.
MEMORY_CHOICES: Final[Mapping[object, str]] = {0: "Full", 8: "8-bit", 4: "4-bit"}
MEMORY_NOTE: Final = (
    "8-bit takes half the memory and 4-bit a quarter, so more chats stay ready. Answers may differ "
    "slightly."
)
AT_NEXT_LOAD: Final = "Context length and chat memory apply the next time the model loads."
DONE: Final = "Done"


def title(model_name: str) -> str:
    return f"Defaults for {model_name}"
