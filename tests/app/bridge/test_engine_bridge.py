from __future__ import annotations

import threading
from collections.abc import Callable

from PySide6.QtCore import QCoreApplication
from pytestqt.qtbot import QtBot

from app.bridge.engine_bridge import EngineBridge
from engine.config import EngineConfig
from engine.events import Event, ModelLoaded, ModelUnloaded, TextDelta
from engine.types import Channel, RequestId
from tests.fakes.fake_engine import FakeEngine


class Heard:
    """A record of the events that each signal of a bridge delivered, with the thread ids."""

    def __init__(self, bridge: EngineBridge) -> None:
        self.model: list[Event] = []
        self.request: list[Event] = []
        self.threads: set[int] = set()
        bridge.model_changed.connect(self._hear_model)
        bridge.request_changed.connect(self._hear_request)

    def _hear_model(self, event: Event) -> None:
        self.threads.add(threading.get_ident())
        self.model.append(event)

    def _hear_request(self, event: Event) -> None:
        self.threads.add(threading.get_ident())
        self.request.append(event)


def make_bridge() -> tuple[EngineBridge, FakeEngine]:
    engines: list[FakeEngine] = []

    def make(on_event: Callable[[Event], None]) -> FakeEngine:
        engines.append(FakeEngine(EngineConfig(), on_event))
        return engines[0]

    return EngineBridge(make), engines[0]


def test_events_of_engine_thread_arrive_in_order_on_main_thread(qtbot: QtBot) -> None:
    bridge, engine = make_bridge()
    heard = Heard(bridge)

    def emit() -> None:
        for number in range(1, 201):
            engine.on_event(TextDelta(RequestId("a"), Channel.ANSWER, "x", number))
        engine.on_event(ModelUnloaded())

    thread = threading.Thread(target=emit)
    thread.start()
    thread.join()
    qtbot.waitUntil(lambda: bool(heard.model))
    deltas = [event for event in heard.request if isinstance(event, TextDelta)]
    assert "".join(event.text for event in deltas) == "x" * 200
    assert deltas[-1].num_tokens == 200
    assert len(deltas) < 200, "text that waits in the queue must be merged"
    assert heard.threads == {threading.get_ident()}
    bridge.close()


def test_load_command_reaches_engine_and_its_event_arrives(qtbot: QtBot) -> None:
    bridge, engine = make_bridge()
    heard = Heard(bridge)
    bridge.start()
    assert engine.started
    bridge.engine.load_model("/models/tiny")
    qtbot.waitUntil(lambda: any(isinstance(event, ModelLoaded) for event in heard.model))
    bridge.close()


def test_close_delivers_pending_events(qtbot: QtBot) -> None:
    bridge, engine = make_bridge()
    heard = Heard(bridge)
    engine.on_event(TextDelta(RequestId("a"), Channel.ANSWER, "bye", 1))
    bridge.close()
    assert heard.request == [TextDelta(RequestId("a"), Channel.ANSWER, "bye", 1)]
    assert engine.closed


def test_events_after_the_close_are_not_emitted(qtbot: QtBot) -> None:
    bridge, engine = make_bridge()
    heard = Heard(bridge)
    bridge.close()
    engine.on_event(TextDelta(RequestId("a"), Channel.ANSWER, "late", 1))
    QCoreApplication.processEvents()
    bridge.close()
    assert heard.request == []
