"""Sentences about the removal of a model."""

from __future__ import annotations

from typing import Final

from app.words import computer

ASK_FOR_YES: Final = "Add --yes to remove it."
NOT_REMOVED: Final = "Nothing was removed."
CHOOSE_ONE: Final = "Name it as in the list of rejoinder models, or give its folder."


def question(*, name: str, place: str, size: str, uses_trash: bool) -> str:
    """Return the question before a removal. `size` includes its unit."""
    verb = "Move" if uses_trash else "Delete"
    target = " to the Trash" if uses_trash else ""
    return f"{verb} {name} ({place}){target}? This frees {size}."


def removed(*, name: str, size: str, uses_trash: bool) -> str:
    if uses_trash:
        return f"{name} is in the Trash. Emptying it frees {size}."
    return f"{name} is deleted. This freed {size}."


def not_found(name: str) -> str:
    return f"There is no model “{name}” on {computer.THIS_COMPUTER}."


def several(name: str, number: int) -> str:
    return f"“{name}” is the name of {number} models on {computer.THIS_COMPUTER}."
