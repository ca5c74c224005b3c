"""A program that records which threads call mlx while an engine works, and the types in its events.

    python -m tests.fakes.thread_watch MODEL

It prints one line of JSON with three lists:

    threads   names of the threads that called mlx while the engine ran a chat script
    seen      `threads` and the main thread, which calls mlx once to prove that calls are recorded
    types     names of the types found in events
"""

from __future__ import annotations

import dataclasses
import json
import sys
import threading
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import mlx.core as mx
from typing_extensions import override

from app.cli.client import QueuedEngine, load_model
from app.cli.player import ScriptPlayer
from app.cli.script import parse_step
from engine.config import EngineConfig
from engine.events import Event

STEPS: list[dict[str, object]] = [
    {"op": "system", "chat": "A", "text": "You are a small boat."},
    {"op": "send", "chat": "A", "text": "one", "max_tokens": 6, "temperature": 0.8},
    {"op": "send", "chat": "B", "text": "two", "max_tokens": 6},
    {"op": "idle"},
    {"op": "send", "chat": "A", "text": "three", "max_tokens": 6, "stop_after": 3},
    {"op": "regenerate", "chat": "B", "max_tokens": 6},
    {"op": "evict", "what": "hot"},
    {"op": "edit", "chat": "A", "message": 1, "text": "four", "max_tokens": 6},
    {"op": "forget", "chat": "B"},
    {"op": "reload"},
    {"op": "send", "chat": "A", "text": "five", "max_tokens": 6},
]


class Watch:
    """A record of the threads that call functions of watched modules. cover() adds a module."""

    def __init__(self) -> None:
        self.threads: set[str] = set()

    def cover(self, module: ModuleType) -> None:
        for name, value in list(vars(module).items()):
            if isinstance(value, ModuleType):
                if value.__name__.startswith("mlx.core."):
                    self.cover(value)
            elif callable(value) and not isinstance(value, type) and not name.startswith("__"):
                setattr(module, name, self._recorded(value))

    def _recorded(self, function: Callable[..., object]) -> Callable[..., object]:
        def recorded(*args: Any, **kwargs: Any) -> object:
            self.threads.add(threading.current_thread().name)
            return function(*args, **kwargs)

        return recorded


class KeepingClient(QueuedEngine):
    """A client that collects the names of all types found in its events."""

    def __init__(self, config: EngineConfig) -> None:
        super().__init__(config)
        self.types: set[str] = set()

    @override
    def next_event(self) -> Event:
        event = super().next_event()
        self.types |= {type(value).__name__ for value in _values(event)}
        return event


def _values(value: object) -> Iterator[object]:
    """Yield the plain values and the mutable dataclasses that a value contains."""
    if dataclasses.is_dataclass(value):
        if not cast("Any", value).__dataclass_params__.frozen:
            yield value
        for field in dataclasses.fields(value):
            yield from _values(getattr(value, field.name))
    elif isinstance(value, (tuple, frozenset)):
        for item in cast("tuple[object, ...]", value):
            yield from _values(item)
    elif isinstance(value, Enum):
        yield value.value
    else:
        yield value


def main() -> None:
    model = Path(sys.argv[1])
    watch = Watch()
    watch.cover(mx)
    config = EngineConfig(use_openblas=False, idle_work=False, saves_battery=False)
    with KeepingClient(config) as client:
        load_model(client, model, lambda _: None)
        player = ScriptPlayer(client, model, check=True)
        reports = [one for step in STEPS for one in player.play(parse_step(json.dumps(step)))]
        assert all(report.holds for report in reports)
    by_engine = sorted(watch.threads)
    mx.zeros((1,))
    seen = sorted(watch.threads)
    print(json.dumps({"threads": by_engine, "seen": seen, "types": sorted(client.types)}))


if __name__ == "__main__":
    main()
