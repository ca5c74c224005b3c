"""A row of the Models window, and the actions of its buttons. No Qt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import Enum, auto

from app.hub.values import Download
from app.viewmodels.models import ModelStatus
from engine.catalog.card import ModelCard


class OfferAction(Enum):
    """The actions of a row's buttons."""

    SHOW = auto()  # ask the Hub for size and configuration
    ASK_AGAIN = auto()  # the same, after the Hub could not be asked
    DOWNLOAD = auto()
    CHOOSE_FILE = auto()  # choose one of several GGUF files, then download it
    PAUSE = auto()
    RESUME = auto()
    TRY_NOW = auto()  # continue a download before the time of its next try
    CANCEL = auto()
    USE = auto()  # load the model
    UNLOAD = auto()
    DEFAULTS = auto()  # show the options of the model
    COPY_4 = auto()  # make a copy with 4 bits per weight
    COPY_6 = auto()
    COPY_8 = auto()
    CANCEL_COPY = auto()
    REVEAL = auto()  # show the folder in the system's file manager
    REMOVE = auto()


# The bits per weight of the copy that each action makes.
COPY_BITS: Mapping[OfferAction, int] = {
    OfferAction.COPY_4: 4,
    OfferAction.COPY_6: 6,
    OfferAction.COPY_8: 8,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A row of the Models window."""

    key: str  # identity of the row: a repository, a download or a folder
    title: str
    description: str = ""  # second line: sizes and kinds
    sentence: str = ""  # third line: a reason, a note or a problem
    state: str = ""  # text above the buttons, such as "Loaded"
    fraction: float | None = None  # progress, 0 to 1; None if no progress bar is shown
    actions: tuple[OfferAction, ...] = ()  # buttons, from left to right
    more: tuple[OfferAction, ...] = ()  # entries of the menu behind the buttons
    keeps: str = ""  # the reason why the model cannot be removed now; empty if it can be
    choices: tuple[tuple[str, str], ...] = ()  # path and text of each GGUF file
    is_usable: bool = True  # False for files that are no complete model; the title is dimmed then


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelsState:
    """The state of models and downloads that all rows depend on."""

    status: ModelStatus
    is_answering: bool = False  # True while an answer is running
    today: date
    now: float = 0.0  # the clock of Download.retry_at
    downloads: tuple[Download, ...] = ()
    # The usable models in the Hub's cache, by the id of their repository.
    cards: Mapping[str, ModelCard]
    # The GGUF files that are being imported or wait for it. Value: progress, 0 to 1.
    imports: Mapping[str, float]
