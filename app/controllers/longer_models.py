"""The search for a model that can read what is too long for the model in use. Main thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from app.bridge.tasks import TaskLane
from app.controllers.catalog import Catalog
from app.controllers.models import ModelsController
from app.controllers.preferences import Preferences
from engine.catalog.card import ModelCard

# Another tokenizer may need more tokens for the same text.
_SPARE = 9 / 8


class LongerModels:
    """The models on this machine with a longer context than the model in use."""

    def __init__(
        self, lane: TaskLane, catalog: Catalog, models: ModelsController, preferences: Preferences
    ) -> None:
        self._lane = lane
        self._catalog = catalog
        self._models = models
        self._preferences = preferences

    def find(self, num_tokens: int, then: Callable[[ModelCard], None]) -> None:
        """Find the best model that can read a prompt, and call `then` if there is one.

        Args:
            num_tokens: tokens of the prompt, as the model in use counts them.
            then: called later, with the card of the model. Its context_len is the context that the
                model is loaded with.
        """
        needed = round(num_tokens * _SPARE)
        limited = (self._limited(card) for card in self._models.cards if card.usable)
        longer = tuple(card for card in limited if card.context_len > needed)
        if longer:
            self._lane.run(
                lambda: self._catalog.best_with_room(longer, needed),
                lambda card: None if card is None else then(card),
            )

    def _limited(self, card: ModelCard) -> ModelCard:
        limit = self._preferences.defaults_of(str(card.path)).context_len or card.context_len
        return replace(card, context_len=min(limit, card.context_len))
