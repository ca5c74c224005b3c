"""The engine thread can be closed in every state, and the process then ends without an error."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from engine.config import EngineConfig
from engine.disk_space import DiskSpace
from engine.engine import Engine
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template

# A program that closes the engine in the state named by its first argument: right after the start,
# while loading, answering or reading ahead, or when an answer is finished.
PROGRAM = """
import sys, threading, time
from engine.config import EngineConfig
from engine.engine import Engine
from engine.events import (
    IdleWorking, LoadModel, ModelLoaded, ModelLoading, ReadAhead, RequestFinished, Submit, TextDelta,
)
from engine.types import ConversationId, ForcedReply, Message, Request, RequestId, Role

assert "mlx.core" not in sys.modules
state, model = sys.argv[1:]
reached = threading.Event()
wanted = {
    "loading": ModelLoading,
    "answering": TextDelta,
    "finished": RequestFinished,
    "reading ahead": IdleWorking,
}.get(state)

def on_event(event):
    if isinstance(event, ModelLoaded):
        engine.send(read_ahead if state == "reading ahead" else Submit(request, time.perf_counter()))
    if wanted and isinstance(event, wanted) and getattr(event, "path", "x"):
        reached.set()

request = Request(
    request_id=RequestId("r"),
    conversation_id=ConversationId("c"),
    messages=(Message(role=Role.USER, content="one"),),
    new_messages=frozenset({0}),
    max_tokens=400 if state == "answering" else 4,
    forced=ForcedReply(text="boat " * 300),
)
read_ahead = ReadAhead(
    conversation_id=ConversationId("c"),
    messages=(
        Message(role=Role.USER, content="boat " * 3000),
        Message(role=Role.ASSISTANT, content="yes"),
    ),
)
engine = Engine(EngineConfig(use_openblas=False), on_event)
engine.start()
engine.send(LoadModel(model))
if wanted:
    assert reached.wait(60)
engine.close()
engine.close()
assert not [t for t in threading.enumerate() if t.name == "engine"]
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "state",
    rest_in_soak(
        ["starting", "loading", "answering", "finished", "reading ahead"],
        "answering",
    ),
)
def test_process_that_closes_the_engine_ends_with_status_0(
    tiny_model: TinyModel, state: str
) -> None:
    model: Path = tiny_model("lfm2", Template.KEEPING)
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, state, str(model)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )

    assert (ended.returncode, ended.stderr) == (0, "")


def test_close_waits_for_the_deletion_of_cached_state(monkeypatch: pytest.MonkeyPatch) -> None:
    is_closed = threading.Event()
    waited: list[bool] = []

    def clear(_: DiskSpace) -> None:
        waited.append(not is_closed.wait(0.2))

    monkeypatch.setattr(DiskSpace, "clear", clear)
    engine = Engine(EngineConfig(use_openblas=False), lambda _: None)
    engine.start()
    engine.clear_disk()
    engine.close(0.0)
    is_closed.set()
    engine.close()

    assert waited == [True]
