"""The real engine without its own thread: it works only during calls of InlineClient's methods."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeVar, cast

from typing_extensions import override

from engine.commands import Asked, EngineCommands
from engine.config import EngineConfig
from engine.core import EngineCore
from engine.events import Answered, Command, Event, Want
from engine.models.opening import WHOLE, ModelOpener
from engine.problem import Problem
from engine.pulse import Pulse
from engine.wanted import Wanted

A = TypeVar("A")


class InlineClient(EngineCommands):
    """A client whose methods run the engine core in the calling thread.

    It satisfies the protocol app.cli.client.EngineClient."""

    def __init__(self, config: EngineConfig, opener: ModelOpener = WHOLE) -> None:
        self._commands: SimpleQueue[Command] = SimpleQueue()
        self._events: deque[tuple[float, Event]] = deque()
        self._wanted = Wanted.of(config)
        self.core = EngineCore(config, self._commands, self._emit, Pulse(), opener)

    @override
    def send(self, command: Command) -> None:
        self._commands.put(command)

    @override
    def want(self, change: Callable[[Wanted], Wanted]) -> None:
        self._wanted = change(self._wanted)
        self.send(Want(self._wanted))

    def next_event(self) -> Event:
        return self.next_timed()[1]

    def answer(self, asked: Asked[A]) -> A:
        """Run the engine until it answers a question. The other events stay."""
        while True:
            for timed in self._events:
                _, event = timed
                if isinstance(event, Answered) and event.question_id == asked.question_id:
                    self._events.remove(timed)
                    assert not isinstance(event.answer, Problem), event.answer
                    return cast("A", event.answer)
            assert self.core.step(wait=False), "the engine has no work left and gave no answer"

    def next_timed(self) -> tuple[float, Event]:
        """Return the time.perf_counter() at which the next event was emitted, and the event."""
        while not self._events:
            assert self.core.step(wait=False), "the engine has no work left and emitted no event"
        return self._events.popleft()

    def step(self) -> bool:
        """Run one step of the engine and check the cache's invariants. Return False if idle."""
        worked = self.core.step(wait=False)
        if self.core.cache is not None:
            self.core.cache.check_invariants()
        return worked

    def new_events(self) -> list[Event]:
        """Return the events that were not returned before."""
        events = [event for _, event in self._events]
        self._events.clear()
        return events

    def run_until_idle(self) -> list[Event]:
        """Run the engine until no work is left. Return the events that no earlier call returned."""
        while self.step():
            pass
        return self.new_events()

    def _emit(self, event: Event) -> None:
        self._events.append((time.perf_counter(), event))
