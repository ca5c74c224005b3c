"""The models that programs can list, and that they can choose if the user lets them.

The names that programs send are compared with those of the list. They are never used as paths.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from engine.catalog.card import ModelCard
from engine.events import ModelFacts

# Loads the model in a folder. It is called on the thread of the server and must not block. If the
# model is not loaded, it calls the function that it gets, on any thread.
LoadChosen = Callable[[Path, Callable[[], None]], None]


@dataclass(frozen=True, slots=True)
class Choice:
    """The models that programs can choose, and the way to load them."""

    load: LoadChosen
    cards: tuple[ModelCard, ...]  # all models of this computer, usable or not


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedModel:
    """A model in the lists that programs get."""

    name: str  # no other model in the list has it
    path: str
    model_type: str
    context_len: int  # number of tokens; 0: not known
    weight_bytes: int


class OfferedModels:
    """The models under their names. For the event loop of the server."""

    def __init__(self, choice: Choice | None) -> None:
        """Create the object. choice: None if programs cannot choose the model."""
        self._load = choice and choice.load
        self._cards: dict[str, ModelCard] = {}
        self._titles: dict[str, ModelCard] = {}  # those that only one model has
        self.offer(choice.cards if choice else ())

    def offer(self, cards: tuple[ModelCard, ...]) -> None:
        """Replace the models of this computer."""
        usable = [card for card in cards if card.usable] if self._load else []
        self._cards = {}
        for card in usable:
            self._cards[_free_name(card.name, self._cards)] = card
        numbers = Counter(card.title for card in usable)
        self._titles = {card.title: card for card in usable if numbers[card.title] == 1}

    def listed(self, loaded: ModelFacts | None) -> tuple[ListedModel, ...]:
        """Return the loaded model and all that can be chosen. The loaded one comes first."""
        if loaded is None:
            return tuple(_of_card(name, card) for name, card in self._cards.items())
        others = {name: card for name, card in self._cards.items() if not card.is_at(loaded.path)}
        own = (name for name in self._cards if name not in others)
        name = next(own, None) or _free_name(loaded.name, others)
        return listed_facts(name, loaded), *(_of_card(*other) for other in others.items())

    def find(self, name: str) -> ModelCard | None:
        """Return the model that can be chosen by exactly this name, or by this title on screen."""
        return self._cards.get(name) or self._titles.get(name)

    def load(self, card: ModelCard, on_refused: Callable[[], None]) -> None:
        """Load a model from `find`. on_refused: called on any thread if it is not loaded."""
        assert self._load is not None
        self._load(card.path, on_refused)


def _free_name(name: str, used: dict[str, ModelCard]) -> str:
    """Return a name, with a number if another model in the list has it."""
    numbered = (f"{name} ({number})" for number in count(2))
    return name if name not in used else next(one for one in numbered if one not in used)


def listed_facts(name: str, facts: ModelFacts) -> ListedModel:
    """Return the loaded model as it is listed."""
    return ListedModel(
        name=name,
        path=facts.path,
        model_type=facts.model_type,
        context_len=facts.context_len,
        weight_bytes=facts.weight_bytes,
    )


def _of_card(name: str, card: ModelCard) -> ListedModel:
    return ListedModel(
        name=name,
        path=str(card.path),
        model_type=card.model_type,
        context_len=card.context_len,
        weight_bytes=card.size_bytes,
    )
