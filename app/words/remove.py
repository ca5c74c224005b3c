"""Sentences about the removal of a model."""

from __future__ import annotations

from typing import Final

from app.words import computer

ASK_FOR_YES: Final = "Add --yes to remove it."
NOT_REMOVED: Final = "Nothing was removed."
CHOOSE_ONE: Final = "Name it as in the list of rejoinder models, or give its folder."

LIST_NAMES: Final = "The command rejoinder models lists the models."
ONE_MODEL: Final = "Give the folder of one model. A GGUF file must be opened in Rejoinder first."


def question(*, name: str, place: str, size: str) -> str:
    """Return the question before a removal. `size` includes its unit."""
    return f"Move {name} ({place}) to the Trash? Emptying it frees {size}."


def removed(*, name: str, size: str) -> str:
    return f"{name} is in the Trash. Emptying it frees {size}."


def not_found(name: str) -> str:
    return f"There is no model “{name}” on {computer.THIS_COMPUTER}."


def not_listed(path: str) -> str:
    return f"“{path}” is not a model in the folders that Rejoinder searches."


def no_path(path: str) -> str:
    return f"There is no file or folder “{path}”."


def no_folder(path: str) -> str:
    return f"“{path}” is not a folder with one model in MLX format."


def several(name: str, number: int) -> str:
    return f"“{name}” is the name of {number} models on {computer.THIS_COMPUTER}."
