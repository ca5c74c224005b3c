"""Texts about the model in use, and texts of the model picker."""

from __future__ import annotations

from typing import Final

from app.words import computer, units

# Texts of the model picker.
MODELS: Final = "Models"
ON_THIS_COMPUTER: Final = f"Models on {computer.IN_TITLES}".upper()

# Legend of the list that `rejoinder models` prints.
BEST_MARK: Final = "* is used by rejoinder chat and rejoinder bench, unless --model names another."

# States of a model.
LOOKING: Final = "Looking for models"
READY: Final = "Ready"
UNLOADED: Final = "Unloaded until the next message"
NOT_LOADED: Final = "Not loaded"
LOADED: Final = "Loaded"
NO_MODEL: Final = "Choose a model"  # shown if no model is chosen
DEMO_MODEL: Final = "Demo model"
DEMO_NOTE: Final = "Demo model, 135M: answers are often wrong"

# Parts of a model's description, for example 9B · 4-bit · 5.2 GB.
SEES: Final = "Sees pictures"
TEXT_ONLY: Final = "Text only"

NO_MODELS: Final = (
    f"There is no model on {computer.THIS_COMPUTER} yet. "
    "Download one, or add the folder that has yours."
)

STARTING: Final = "Starting"
CONNECTING: Final = "Connecting the Macs"
CHECKING: Final = "Checking the model"
GONE_ADVICE: Final = "Connect its disk, choose another model, or download it again."


def found_in(number: int, num_broken: int, folder: str, cause: str = "") -> str:
    """Return the result of the search in a folder that the user added.

    Args:
        number: number of models.
        num_broken: number of those that cannot be loaded.
        folder: name of the folder.
        cause: why the first of these cannot be loaded.
    """
    if not number:
        return f"No models found in “{folder}”."
    if number == num_broken == 1:
        return f"The model in “{folder}” can’t be loaded. {cause}"
    found = f"{'1 model' if number == 1 else f'{number:,} models'} found in “{folder}”."
    if not num_broken:
        return found
    if num_broken == number:
        return f"{found} None of them can be loaded."
    return f"{found} {num_broken:,} of them can’t be loaded."


def is_gone(name: str) -> str:
    return f"{name} is no longer on {computer.THIS_COMPUTER}."


WHICH_IS_GONE: Final = f"which is no longer on {computer.THIS_COMPUTER}"
WHICH_CANT_BE_LOADED: Final = "which can’t be loaded"


def chat_used(name: str) -> str:
    return f"This chat used {name}."


def chat_used_but(name: str, why: str) -> str:
    """Return a sentence about a chat's model. why: a clause, such as WHICH_IS_GONE."""
    return f"This chat used {name}, {why}."


CHOOSE_FIRST: Final = "Choose the model that answers, then try again."
CHOOSE_TO_SEND: Final = "Choose the model that answers. Your message is sent after that."


def use_model(name: str) -> str:
    return f"Use {name}"


UNLOAD_QUESTION: Final = "Unload the model now?"
USE_NOW: Final = "Use Now"


def use_now(name: str) -> str:
    """Return the question before a model takes the place of one that writes answers."""
    return f"Use {name} now?"


def stops_answers(count: int) -> str:
    return f"{'It stops' if count == 1 else 'They stop'}. The text written so far is kept."


def stay_with(name: str) -> str:
    return f"Stay with {name}"


def would_read(name: str, num_tokens: int) -> str:
    """Return the cost of staying with the model of this name."""
    return f"{name} would first read about {units.tokens(num_tokens)}."


def importing(*, name: str, percent: str) -> str:
    return f"Importing {percent} · {name}"


def preparing(percent: str) -> str:
    return f"Preparing {percent}"


def preparing_demo(percent: str) -> str:
    """Return the state line of an answer that waits for the demo model."""
    return f"Preparing the demo model, once · {percent}"


def loading(percent: str) -> str:
    return f"Loading {percent}"


def checking(name: str) -> str:
    return f"Checking {name}"


def reading(percent: str) -> str:
    return f"Reading {percent}"


def answering(count: int) -> str:
    return "Answering" if count == 1 else f"Writing {count:,} answers"


def downloading(percent: str) -> str:
    return f"Downloading {percent}"


def bits(number: str) -> str:
    """Return the text for the number of bits per weight, such as "4-bit"."""
    return f"{number}-bit"
