"""The engine for coroutines: a request's events as an iterator, a question's answer as a value.

All methods belong to the event loop in which the object was created. Events come from other threads
and are passed to this loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any, TypeVar, assert_never

from engine.clients import Clients, ModelEvent, RequestEvent
from engine.commands import Asked, EngineCommands
from engine.errors import EngineError
from engine.events import (
    Answered,
    Event,
    ModelFacts,
    ModelFailed,
    ModelLoaded,
    ModelLoading,
    ModelUnloaded,
    RequestFailed,
    RequestFinished,
)
from engine.problem import Problem
from engine.types import Request, RequestId

A = TypeVar("A")

# Seconds. After one to two such times without an event `events` yields None, so that a client gets
# a sign of life. Also seconds without text for the client, while the model writes a tool call.
SILENCE_S = 3.0


class AsyncEngine:
    """The engine as the coroutines of one event loop use it."""

    def __init__(self, engine: EngineCommands, clients: Clients) -> None:
        self._loop = asyncio.get_running_loop()
        self._open: dict[RequestId, _OpenRequest] = {}
        self._answers: dict[Asked[Any], asyncio.Future[Any]] = {}
        # The loaded model, also while it is unloaded until the next request
        self.model: ModelFacts | None = None
        self.model_problem: Problem | None = None  # why there is no model
        self._is_loading = False  # True while the engine loads a model
        self._is_expected = False  # True while the app is about to load a model
        self._awaited = ""  # path of a model whose load was asked for and has not begun
        self._is_settled = asyncio.Event()  # set unless requests wait for a model
        self._is_settled.set()
        self.is_stopping = False  # True once no further request may be submitted
        self.client = clients.join(engine, self._on_event)

    def close(self) -> None:
        """Cancel all open requests. No further event comes."""
        self.client.close()

    async def settled(self) -> None:
        """Wait while a model is being loaded, until `cancel_all`."""
        await self._is_settled.wait()

    def await_model(self, path: str) -> None:
        """Let `settled` wait for a model that will be loaded, until its load has ended."""
        self._awaited = path
        self._note_settled()

    def expect_model(self, *, is_expected: bool) -> None:
        """Let `settled` wait until the app has found and loaded a model, or has found none."""
        self._is_expected = is_expected
        self._note_settled()

    def await_none(self) -> None:
        """Let `settled` wait no longer: the model will not be loaded. Call on any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._note_refusal)

    def cancel_all(self) -> None:
        """End all open answers, and wait for no model. The last events of answers still come."""
        self.is_stopping = True
        self._note_settled()
        for request_id in self._open:
            self.client.cancel(request_id)

    async def events(
        self, request: Request, on_end: Callable[[RequestFinished | RequestFailed], None]
    ) -> AsyncGenerator[RequestEvent | None]:
        """Submit a request and yield its events, or None for each time without one.

        If the iterator is closed before the last event, the request is cancelled.

        on_end: called with the last event, also if the iterator was closed before.
        """
        open_request = _OpenRequest(on_end)
        self._open[request.request_id] = open_request
        self.client.submit(request)
        silence = asyncio.ensure_future(open_request.note_silence())
        try:
            while not open_request.has_ended or not open_request.events.empty():
                yield await open_request.events.get()
        finally:
            silence.cancel()
            if not open_request.has_ended:
                self.client.cancel(request.request_id)

    async def answer(self, asked: Asked[A]) -> A:
        """Return the answer of a question that `client` has just put.

        Raises:
            EngineError: there is no answer.
        """
        future: asyncio.Future[A | Problem] = self._loop.create_future()
        self._answers[asked] = future
        answer = await future
        if isinstance(answer, Problem):
            raise EngineError.of(answer)
        return answer

    def _on_event(self, event: Event) -> None:
        """Pass an event to the loop. Runs on any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._receive, event)

    def _receive(self, event: Event) -> None:
        if isinstance(event, ModelEvent):
            self._receive_of_model(event)
            return
        match event:
            case Answered(question_id, answer):
                future = self._answers.pop(Asked(question_id))
                if not future.done():
                    future.set_result(answer)
            case _:
                self._receive_of_request(event)

    def _receive_of_model(self, event: ModelEvent) -> None:
        match event:
            case ModelLoaded(facts):
                self.model, self.model_problem = facts, None
            case ModelFailed(_, problem):
                self.model, self.model_problem = None, problem
            case ModelUnloaded(loads_again=True):
                self._note_load(is_loading=False)
                return
            case ModelUnloaded():
                self.model = None
            case ModelLoading(path):
                if path:  # else only libraries are imported
                    self._awaited = "" if path == self._awaited else self._awaited
                    self._note_load(is_loading=True)
                return
            case _:
                assert_never(event)
        self._awaited = ""
        self._note_load(is_loading=False)

    def _note_refusal(self) -> None:
        self._awaited = ""
        self._note_settled()

    def _note_load(self, *, is_loading: bool) -> None:
        self._is_loading = is_loading
        self._note_settled()

    def _note_settled(self) -> None:
        is_coming = self._is_loading or self._is_expected or self._awaited
        if is_coming and not self.is_stopping:
            self._is_settled.clear()
        else:
            self._is_settled.set()

    def _receive_of_request(self, event: Event) -> None:
        if not isinstance(event, RequestEvent):
            return
        open_request = self._open[event.request_id]
        if isinstance(event, (RequestFinished, RequestFailed)):
            open_request.has_ended = True
            del self._open[event.request_id]
            open_request.on_end(event)
        open_request.put(event)


class _OpenRequest:
    """The events of a request that were not taken yet."""

    def __init__(self, on_end: Callable[[RequestFinished | RequestFailed], None]) -> None:
        self.on_end = on_end
        self.events: asyncio.Queue[RequestEvent | None] = asyncio.Queue()
        self.has_ended = False
        self._num_events = 0

    def put(self, event: RequestEvent) -> None:
        self._num_events += 1
        self.events.put_nowait(event)

    async def note_silence(self) -> None:
        """Put None after each time without an event, until the last event.

        No None is put behind values that wait: the client may take none for minutes. A timer for
        each event would take more time.
        """
        while not self.has_ended:
            num_events = self._num_events
            await asyncio.sleep(SILENCE_S)
            if self._num_events == num_events and self.events.empty():
                self.events.put_nowait(None)
