"""Texts about the preview of an answer, in the editor of a message."""

from __future__ import annotations

from typing import Final

from app.words import units

SWITCH: Final = "Preview"
SWITCH_TIP: Final = "Shows how the answer would begin, while you change the message"
FIELD: Final = "Preview of the answer"
BEGINS: Final = "The answer would begin:"
BEGINS_LATER: Final = "After thinking, the answer would begin:"
THINKS: Final = "The thinking would begin:"
WHOLE: Final = "The whole answer would be:"
EMPTY: Final = "The answer would be empty."
WAITS_FOR_ANSWERS: Final = "The preview waits until the other answers end."
WAITS_FOR_CHAT: Final = "The preview begins once this chat is read."
WAITS_FOR_POWER: Final = "No preview on battery power."
NO_MODEL: Final = "No preview without a model."
LOADING: Final = "The preview begins once the model is loaded."
UNLOADED: Final = "No preview while the model is unloaded. Sending loads it."
CHOOSE: Final = "No preview until you choose a model for this chat."


def reading(num_tokens: int) -> str:
    return f"Reading {units.tokens(num_tokens)} for the preview…"


def refused(title: str, cause: str) -> str:
    return f"{title} {cause}".strip()


def cut(text: str) -> str:
    """Return the beginning of a longer answer."""
    return f"{text} …" if text.endswith((".", "!", "?")) else f"{text}…"


def unfinished(heading: str) -> str:
    """Return the heading of a preview that is still being written."""
    return f"{heading.removesuffix(':')} (still being written):"


def spoken(line: str, text: str) -> str:
    """Return what a screen reader says: the line above a preview, and its text."""
    return f"{line} {text}".strip()
