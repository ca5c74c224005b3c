"""Texts about what the model will read before it answers, where the action is."""

from __future__ import annotations

from typing import Final

from app.words import units

INSTANT: Final = "Instant"
NOTHING: Final = "Reads nothing"


def reads(tokens: str, *, time: str, is_all: bool, cause: str = "") -> str:
    """Return the cost of an action.

    Args:
        tokens: the tokens to read, with the unit.
        time: the time that this takes, or "".
        is_all: True if nothing of a longer chat can be restored.
        cause: why most of the tokens are read again, or "".
    """
    subject = f"Reads all {tokens}" if is_all else f"Reads {tokens}"
    return f"{subject}{f', {time}' if time else ''}{f': {cause}' if cause else ''}"


def restores_from_disk(tokens: str, *, reads: str) -> str:
    """Return the cost of an action whose chat is on disk. reads: as reads() returns it."""
    return f"Restores {tokens} from disk · {reads[:1].lower()}{reads[1:]}"


def about(time: str) -> str:
    return f"about {time}"


def of_other_model(num_tokens: int) -> str:
    """Return a sentence in the list of models, about the chat on show."""
    return f"A model that has not read this chat first reads about {units.tokens(num_tokens)}."


def of_action(action: str, cost: str) -> str:
    """Return an action or a state, and what the action or the next message costs."""
    return f"{action} · {cost}" if cost else action
