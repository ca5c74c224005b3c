"""An engine thread that ends or blocks is replaced: open requests fail, and the next load works."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

import pytest
from tokenizers import Tokenizer, decoders, models

from engine.cache.prefix_cache import PrefixCache
from engine.cache_space import CacheSpace
from engine.config import EngineConfig
from engine.core import EngineCore
from engine.engine import Engine
from engine.errors import EngineBlockedError, EngineEndedError, TokenizerError, attempt
from engine.events import (
    Answered,
    Event,
    LoadModel,
    ModelFailed,
    ModelLoaded,
    RequestFailed,
    RequestFinished,
    Submit,
)
from engine.idle import Idler
from engine.pulse import Pulse
from engine.runner.runner import Runner
from engine.served_model import ServedModel
from engine.types import ConversationId, ForcedReply, Message, Request, RequestId, Role
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.tiny_model import Template

pytestmark = pytest.mark.slow

T = TypeVar("T", bound=Event)
# A method of the engine thread, for each kind of work. The thread ends at its first call.
PLACES = [
    (EngineCore, "_obey"),
    (ServedModel, "_serve"),
    (CacheSpace, "check_memory"),
    (PrefixCache, "acquire"),
    (Runner, "start"),
    (Runner, "read"),
    (Runner, "decode"),
    (Runner, "finish"),
    (Runner, "publish_turn"),
    (Idler, "step"),
]
# With a load under way, in a prompt, in a reply, and without a request.
HERE = [(ServedModel, "_serve"), (Runner, "read"), (Runner, "decode"), (Idler, "step")]


class Death(BaseException):
    """An exception that the engine thread does not handle."""


class Client:
    """A real engine thread, and its events in order."""

    def __init__(self, **options: Any) -> None:
        self.events: SimpleQueue[Event] = SimpleQueue()
        config = EngineConfig(use_openblas=False, cache_budget_bytes=1 << 28, **options)
        self.engine = Engine(config, self.events.put)
        self.engine.start()

    def submit(self, name: str) -> None:
        request = Request(
            request_id=RequestId(name),
            conversation_id=ConversationId(name),
            messages=(Message(role=Role.USER, content="one"),),
            new_messages=frozenset({0}),
            max_tokens=8,
            forced=ForcedReply(text="boat boat"),
        )
        self.engine.send(Submit(request, time.perf_counter()))

    def wait(self, kind: type[T], count: int = 1) -> list[T]:
        """Return the next events of a kind. Skip all other events."""
        found: list[T] = []
        while len(found) < count:
            event = self.events.get(timeout=60)
            if isinstance(event, kind):
                found.append(event)
        return found

    def until_model_fails(self) -> list[RequestFinished | RequestFailed]:
        """Return the ends of all requests up to the next ModelFailed event."""
        ends: list[RequestFinished | RequestFailed] = []
        while not isinstance(event := self.events.get(timeout=60), ModelFailed):
            if isinstance(event, RequestFinished | RequestFailed):
                ends.append(event)
        return ends


@pytest.fixture
def client() -> Iterator[Client]:
    made = Client()
    yield made
    made.engine.close()


def plant(monkeypatch: pytest.MonkeyPatch, place: tuple[type, str]) -> threading.Event:
    """Make the next call of a method raise Death, as soon as the returned event is set."""
    owner, name = place
    due = threading.Event()

    def die(*args: object, **options: object) -> None:
        monkeypatch.undo()
        due.wait(60)
        raise Death(name)

    monkeypatch.setattr(owner, name, die)
    return due


@pytest.mark.parametrize(
    "place",
    [pytest.param(place, marks=() if place in HERE else pytest.mark.soak) for place in PLACES],
    ids=lambda place: place[1].strip("_"),
)
def test_requests_fail_and_next_load_works_after_the_engine_thread_ended(
    client: Client, tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch, place: tuple[type, str]
) -> None:
    path = str(tiny_model("llama", Template.KEEPING))
    client.engine.send(LoadModel(path))
    client.wait(ModelLoaded)

    due = plant(monkeypatch, place)
    if place[1] == "_serve":
        client.engine.send(LoadModel(path))
    for name in ("first", "second"):
        client.submit(name)
    client.engine.await_idle()
    due.set()
    ended = client.until_model_fails()
    client.wait(Answered)
    client.engine.send(LoadModel(path))
    client.wait(ModelLoaded)
    client.submit("third")
    (third,) = client.wait(RequestFinished)

    assert {event.request_id for event in ended} == {"first", "second"}
    failed = [event for event in ended if isinstance(event, RequestFailed)]
    assert {event.problem.title for event in failed} <= {EngineEndedError.title}
    assert third.content


def test_requests_fail_and_next_load_works_after_the_engine_thread_blocked(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tiny_model("llama", Template.KEEPING))
    client = Client(blocked_after_s=1.0)
    blocked, released = threading.Event(), threading.Event()
    pulses: list[Pulse] = []  # that of the blocked thread

    def block(*args: object, **options: object) -> None:
        restored.undo()
        blocked.set()
        released.wait(60)

    def busy_s(pulse: Pulse) -> float:
        if blocked.is_set() and not pulses:
            pulses.append(pulse)
        return math.inf if pulse in pulses else 0.0

    # Real durations would depend on the machine: loading a model can take more than a second.
    monkeypatch.setattr(Pulse, "busy_s", property(busy_s))
    client.engine.send(LoadModel(path))
    client.wait(ModelLoaded)
    restored = pytest.MonkeyPatch()
    restored.setattr(Runner, "read", block)
    client.submit("first")
    (failed,) = client.until_model_fails()
    client.engine.send(LoadModel(path))
    client.wait(ModelLoaded)
    client.submit("second")
    (second,) = client.wait(RequestFinished)
    released.set()
    client.engine.close()
    for thread in threading.enumerate():
        if thread.name == "engine":
            thread.join(60)

    assert isinstance(failed, RequestFailed)
    assert failed.problem.title == EngineBlockedError.title
    assert second.request_id == "second"
    assert client.events.empty()  # nothing of the blocked thread follows


def test_panic_of_a_tokenizer_is_a_failure_with_a_sentence() -> None:
    backend = Tokenizer(models.WordLevel({"x": 0}, unk_token="x"))
    backend.decoder = decoders.Strip("x", 5, 5)  # panics on texts shorter than 10 characters
    failed = attempt("a panic", lambda: backend.decode([0]))

    assert not isinstance(failed, str)
    assert failed.problem.title == TokenizerError.title


def test_state_on_disk_is_deleted_after_the_engine_thread_ended(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = str(tiny_model("llama", Template.KEEPING))
    client = Client()
    client.engine.set_disk(str(tmp_path), enabled=True, budget_bytes=None)
    client.engine.send(LoadModel(path))
    client.wait(ModelLoaded)
    (tmp_path / "model").mkdir()
    plant(monkeypatch, (EngineCore, "_obey")).set()
    client.submit("first")
    client.until_model_fails()

    client.engine.clear_disk()
    client.wait(Answered)

    assert not (tmp_path / "model").exists()
    client.engine.close()
