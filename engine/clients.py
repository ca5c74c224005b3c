"""Several clients of one engine: each gets the events of its own requests and questions. No mlx.

The owner of an engine is the window or the command `serve`. It creates the engine with
`Clients.emit` as the receiver of events. Others, such as the local server, join later:

    engine --event--> Clients.emit --> the client that submitted the request or put the question
                                   --> the owner, if it was none of the clients
                                   --> everyone: events of models, stages and idle work
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from typing_extensions import override

from engine.commands import EngineCommands
from engine.events import (
    Answered,
    Command,
    Event,
    ModelFailed,
    ModelLoaded,
    ModelLoading,
    ModelUnloaded,
    PrefillProgress,
    PreviewProgress,
    RequestFailed,
    RequestFinished,
    RequestQueued,
    RequestStarted,
    Submit,
    TextDelta,
)
from engine.questions import Ask, QuestionId
from engine.types import RequestId
from engine.wanted import Wanted

ModelEvent = ModelLoading | ModelLoaded | ModelFailed | ModelUnloaded
RequestEvent = (
    RequestQueued | RequestStarted | PrefillProgress | TextDelta | RequestFinished | RequestFailed
)


class Client(EngineCommands):
    """A client of an engine beside its owner. All methods may be called from any thread.

    It gets the events of its own requests and questions. Settings hold for the whole engine.
    """

    def __init__(
        self, engine: EngineCommands, clients: Clients, on_event: Callable[[Event], None]
    ) -> None:
        self._engine = engine
        self._clients = clients
        self.on_event = on_event

    @override
    def send(self, command: Command) -> None:
        match command:
            case Submit(request):
                self._clients.note_request(request.request_id, self)
            case Ask(question_id=question_id):
                self._clients.note_question(question_id, self)
            case _:
                pass
        self._engine.send(command)

    @override
    def want(self, change: Callable[[Wanted], Wanted]) -> None:
        self._engine.want(change)

    def close(self) -> None:
        """Cancel the open requests of this client. It gets no further event."""
        for request_id in self._clients.leave(self):
            self._engine.cancel(request_id)


class Clients:
    """Passes each event of an engine to the clients that it concerns."""

    def __init__(self, on_event: Callable[[Event], None]) -> None:
        """Create the clients of an engine.

        on_event: called with each event that concerns the owner of the engine. Like the function of
            a client, it is called on the thread of the event, and must neither block nor raise.
        """
        self._on_event = on_event
        # Protects the fields below. It is held while an event is passed on, so that no event
        # reaches a client that has left.
        self._lock = threading.RLock()
        self._joined: list[Client] = []
        self._requests: dict[RequestId, Client] = {}
        self._questions: dict[QuestionId, Client] = {}
        # The newest event that says which model answers, or why none does. A model that is unloaded
        # until the next request still answers.
        self._model: ModelLoaded | ModelFailed | ModelUnloaded | None = None

    def join(self, engine: EngineCommands, on_event: Callable[[Event], None]) -> Client:
        """Add a client. It gets the newest event about the model that answers at once."""
        client = Client(engine, self, on_event)
        with self._lock:
            self._joined.append(client)
            if self._model is not None:
                on_event(self._model)
        return client

    def leave(self, client: Client) -> list[RequestId]:
        """Remove a client. Return the ids of its open requests. A second call returns none."""
        with self._lock:
            self._joined = [one for one in self._joined if one is not client]
            return [name for name, owner in self._requests.items() if owner is client]

    def note_request(self, request_id: RequestId, client: Client) -> None:
        with self._lock:
            self._requests[request_id] = client

    def note_question(self, question_id: QuestionId, client: Client) -> None:
        with self._lock:
            self._questions[question_id] = client

    def emit(self, event: Event) -> None:
        """Pass on an event of the engine."""
        with self._lock:
            match event:
                case RequestFinished(request_id) | RequestFailed(request_id):
                    self._pass_to(self._requests.pop(request_id, None), event)
                case (
                    RequestQueued(request_id)
                    | RequestStarted(request_id)
                    | PrefillProgress(request_id)
                    | TextDelta(request_id)
                ):
                    self._pass_to(self._requests.get(request_id), event)
                case Answered(question_id):
                    self._pass_to(self._questions.pop(question_id, None), event)
                case PreviewProgress(question_id):
                    self._pass_to(self._questions.get(question_id), event)
                case _:
                    self._note_model(event)
                    self._on_event(event)
                    for client in self._joined:
                        client.on_event(event)

    def _note_model(self, event: Event) -> None:
        match event:
            case ModelUnloaded(loads_again=True):
                pass
            case ModelLoaded() | ModelFailed() | ModelUnloaded():
                self._model = event
            case _:
                pass

    def _pass_to(self, client: Client | None, event: Event) -> None:
        if client is None:
            self._on_event(event)
        elif client in self._joined:
            client.on_event(event)
