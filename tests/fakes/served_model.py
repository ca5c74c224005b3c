"""A running server with a tiny model, and an HTTP client for it.

Replies can be given, because those of a random model end nowhere and call no tools."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
from typing_extensions import override

from app.cli.processed import ProcessedTokens
from app.server import answer
from app.server.access import Access, ServerAddress
from app.server.live_requests import SeenRequests
from app.server.model_choice import Choice
from app.server.report import Report
from app.server.running import RunningServer
from engine.catalog.card import ModelCard
from engine.clients import Clients
from engine.config import EngineConfig
from engine.engine import Engine
from engine.events import (
    Answered,
    Command,
    Event,
    ModelFailed,
    ModelLoaded,
    ModelLoading,
    RequestFinished,
    Submit,
)
from engine.types import ForcedReply, Request
from tests.fakes.ask_store import PATIENCE_S

KEY = "secret"


@dataclass(frozen=True)
class Response:
    """A response, with its body as JSON or, of a stream, as the data of its events or lines."""

    status: int
    headers: dict[str, str]
    body: dict[str, Any] = field(default_factory=dict[str, Any])
    events: list[tuple[str, dict[str, Any]]] = field(
        default_factory=list[tuple[str, dict[str, Any]]]
    )
    text: str = ""


class ServedModel:
    """A server under test."""

    def __init__(
        self,
        config: EngineConfig,
        access: Access,
        replies_file: Path | None,
        cards: tuple[ModelCard, ...] = (),
    ) -> None:
        self.replies: deque[ForcedReply] = deque()
        # Returns the reply to a request. None: the model draws one.
        self.reply_to: Callable[[Request], ForcedReply | None] = self._next_reply
        self.requests: list[Request] = []
        self.finished: list[RequestFinished] = []
        self.reports: SimpleQueue[Report] = SimpleQueue()
        self.num_open: list[int] = []
        self.chosen: list[Path] = []  # models that requests have chosen
        self.refuses_choice = False  # True: they are not loaded, as if the window wrote an answer
        self.processed = ProcessedTokens()
        self._events: SimpleQueue[Event] = SimpleQueue()  # of models and own questions
        clients = _RecordingClients(self._on_event, self.finished.append)
        self.engine = _ScriptedEngine(config, clients.emit, self._submitted)
        self.engine.start()
        self.server = RunningServer(
            self.engine,
            clients,
            ServerAddress(access=access),
            self,
            replies_file,
            Choice(self._load_chosen, cards) if cards else None,
        )

    def load(self, folder: Path) -> None:
        self.engine.load_model(str(folder))
        self.await_event(ModelLoaded)

    def await_idle(self) -> None:
        """Wait until nothing is left to read ahead."""
        self.engine.await_idle()
        self.await_event(Answered)

    def await_event(self, kind: type[ModelLoading | ModelLoaded | ModelFailed | Answered]) -> None:
        """Wait for an event of the model that is named by its path, or for an answer."""
        while True:
            event = self._events.get(timeout=PATIENCE_S)
            if isinstance(event, kind) and not (isinstance(event, ModelLoading) and not event.path):
                return
            assert not isinstance(event, ModelFailed), event

    def close(self) -> None:
        self.server.stop()
        self.engine.close()

    def connect(self) -> HTTPConnection:
        return HTTPConnection(urlsplit(self.server.url).netloc, timeout=PATIENCE_S)

    def send(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> Response:
        """Send a request with the right key, and read the whole response."""
        connection = self.connect()
        try:
            sent = body if isinstance(body, bytes | None) else json.dumps(body).encode()
            connection.request(
                method, path, sent, {"authorization": f"Bearer {KEY}", **(headers or {})}
            )
            return _read(connection.getresponse())
        finally:
            connection.close()

    def get(self, path: str) -> Response:
        return self.send("GET", path)

    def post(self, path: str, **body: Any) -> Response:
        return self.send("POST", path, body)

    def look(self, shown: int | None = None) -> SeenRequests:
        """Return the requests as the Server page gets them, with the texts of one of them."""
        found: SimpleQueue[SeenRequests] = SimpleQueue()
        self.server.look(shown, found.put)
        return found.get(timeout=PATIENCE_S)

    def report(self, report: Report) -> None:
        self.reports.put(report)

    def note_open(self, num_open: int) -> None:
        self.num_open.append(num_open)

    def redo(self) -> int:
        """Return how many tokens were fed again after the same prefix, in the last request."""
        last = self.finished[-1]
        return self.processed.add_answer(
            last.prompt_ids, last.output_ids, restored=last.usage.plan.restored
        )

    def _load_chosen(self, path: Path, refuse: Callable[[], None]) -> None:
        self.chosen.append(path)
        if self.refuses_choice:
            refuse()
        else:
            self.engine.load_model(str(path))

    def _submitted(self, request: Request) -> ForcedReply | None:
        self.requests.append(request)
        return self.reply_to(request)

    def _next_reply(self, _request: Request) -> ForcedReply | None:
        return self.replies.popleft() if self.replies else None

    def _on_event(self, event: Event) -> None:
        if isinstance(event, (ModelLoading, ModelLoaded, ModelFailed, Answered)):
            self._events.put(event)


@contextmanager
def served_model(
    folder: Path | None,
    access: Access | None = None,
    replies_file: Path | None = None,
    cards: tuple[ModelCard, ...] = (),
    **config: Any,
) -> Generator[ServedModel]:
    """Serve the model in a folder, or none. Requests without a seed all get the same.

    cards: models that requests can choose. Without any, they cannot.

    With some seeds a random model begins a reply with a marker of reasoning, which a template drops.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answer, "secrets", SimpleNamespace(randbits=_same_seed))
        with _served(folder, access, replies_file, cards, **config) as served:
            yield served


@contextmanager
def _served(
    folder: Path | None,
    access: Access | None,
    replies_file: Path | None,
    cards: tuple[ModelCard, ...],
    **config: Any,
) -> Generator[ServedModel]:
    served = ServedModel(
        EngineConfig(use_openblas=False, cache_budget_bytes=1 << 30, saves_battery=False, **config),
        access or Access(key=KEY),
        replies_file,
        cards,
    )
    try:
        if folder is not None:
            served.load(folder)
        yield served
    finally:
        served.close()


class _ScriptedEngine(Engine):
    """An engine that gives replies which its owner chooses."""

    def __init__(
        self,
        config: EngineConfig,
        on_event: Callable[[Event], None],
        reply_to: Callable[[Request], ForcedReply | None],
    ) -> None:
        super().__init__(config, on_event)
        self._reply_to = reply_to

    @override
    def send(self, command: Command) -> None:
        if isinstance(command, Submit):
            request = command.request
            command = replace(command, request=replace(request, forced=self._reply_to(request)))
        super().send(command)


class _RecordingClients(Clients):
    """Clients of an engine whose finished requests are recorded."""

    def __init__(
        self, on_event: Callable[[Event], None], on_finished: Callable[[RequestFinished], None]
    ) -> None:
        super().__init__(on_event)
        self._on_finished = on_finished

    @override
    def emit(self, event: Event) -> None:
        if isinstance(event, RequestFinished):
            self._on_finished(event)
        super().emit(event)


def _read(response: HTTPResponse) -> Response:
    headers = {name.lower(): value for name, value in response.getheaders()}
    text = response.read().decode()
    if headers.get("content-type", "").startswith("text/event-stream"):
        return Response(response.status, headers, events=list(_events(text)), text=text)
    if headers.get("content-type") == "application/x-ndjson":
        lines = [("", json.loads(line)) for line in text.splitlines()]
        return Response(response.status, headers, events=lines, text=text)
    is_json = headers.get("content-type") == "application/json"
    return Response(response.status, headers, json.loads(text) if is_json else {}, text=text)


def _events(text: str) -> Iterable[tuple[str, dict[str, Any]]]:
    """Yield name and data of each server-sent event, without comments."""
    for block in text.split("\n\n"):
        name, data = "", ""
        for line in block.split("\n"):
            kind, _, value = line.partition(": ")
            name = value if kind == "event" else name
            data = value if kind == "data" else data
        if data and data != "[DONE]":
            yield name, json.loads(data)


def _same_seed(_bits: int) -> int:
    return 7
