"""The models of a server: the loaded one, and those that a request can load by its name."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from app.server.async_engine import AsyncEngine
from app.server.errors import ErrorKind, ServerError
from app.server.model_choice import ListedModel, OfferedModels
from app.words import server as words
from engine.events import ModelFacts


class ServedModels:
    """The models that answer requests. For the event loop of the server."""

    def __init__(
        self, engine: AsyncEngine, offered: OfferedModels, num_open: Callable[[], int]
    ) -> None:
        """Create the object.

        Args:
            engine: the engine.
            offered: the models that requests can name.
            num_open: returns the number of answers that are written or wait.
        """
        self._engine = engine
        self._offered = offered
        self._num_open = num_open
        self._num_using = 0  # requests for which the loaded model must stay

    async def loaded(self) -> ModelFacts | None:
        """Return the loaded model, if there is one. Wait while one is being loaded.

        Raises:
            ServerError: the server is being stopped.
        """
        await self._engine.settled()
        if self._engine.is_stopping:
            raise ServerError(ErrorKind.UNAVAILABLE, words.SERVER_STOPPED)
        return self._engine.model

    async def required(self) -> ModelFacts:
        """Return the loaded model. Wait while one is being loaded.

        Raises:
            ServerError: there is none.
        """
        return self._required(await self.loaded())

    def _required(self, model: ModelFacts | None) -> ModelFacts:
        if model is None:
            problem = self._engine.model_problem
            raise ServerError(ErrorKind.UNAVAILABLE, str(problem or words.NO_MODEL))
        return model

    async def listed(self) -> tuple[ListedModel, ...]:
        """Return the loaded model and those that requests can name. Wait while one is being loaded.

        Raises:
            ServerError: the server is being stopped.
        """
        return self._offered.listed(await self.loaded())

    @asynccontextmanager
    async def used(self, name: str) -> AsyncGenerator[ModelFacts]:
        """Yield the model that answers a request. No other request replaces it within the context.

        name: the model in the request. If it can be loaded, it is; another name changes nothing.

        Raises:
            ServerError: there is no model, or the one with this name cannot be loaded now.
        """
        model = await self._named(name)
        self._num_using += 1
        try:
            yield model
        finally:
            self._num_using -= 1

    async def _named(self, name: str) -> ModelFacts:
        """Return the loaded model. Load the one with this name before, if it can be loaded.

        A request loads a model only once. So clients that name different models in turn get errors,
        but do not replace each other's models for ever.

        Raises:
            ServerError: there is no model, or the one with this name cannot be loaded now.
        """
        model = await self.loaded()
        card = self._offered.find(name)
        if card is None or (model is not None and card.is_at(model.path)):
            return self._required(model)
        if not self._num_using and not self._num_open():
            self._engine.await_model(str(card.path))
            self._offered.load(card, self._engine.await_none)
            model = await self.loaded()
        if not card.is_at(self._required(model).path):
            answering = self._required(model).title
            raise ServerError(ErrorKind.UNAVAILABLE, words.not_loaded_now(card.title, answering))
        return self._required(model)
