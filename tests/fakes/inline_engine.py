"""The real engine in the calling thread: it works when a test asks it to."""

from __future__ import annotations

import time
from collections import deque
from queue import SimpleQueue

from typing_extensions import override

from engine.commands import EngineCommands
from engine.config import EngineConfig
from engine.core import EngineCore
from engine.events import Command, Event


class InlineClient(EngineCommands):
    """An app.cli.client.EngineClient whose engine a test can look into."""

    def __init__(self, config: EngineConfig) -> None:
        self._commands: SimpleQueue[Command] = SimpleQueue()
        self._events: deque[tuple[float, Event]] = deque()
        self.core = EngineCore(config, self._commands, self._emit)

    @override
    def send(self, command: Command) -> None:
        self._commands.put(command)

    def next_event(self) -> Event:
        return self.next_timed()[1]

    def next_timed(self) -> tuple[float, Event]:
        """The next event, and when it was said, in seconds of time.perf_counter()."""
        while not self._events:
            assert self.core.step(wait=False), "the engine has nothing to do and nothing to say"
        return self._events.popleft()

    def step(self) -> bool:
        """Do one piece of work, then check the cache's invariants; whether anything was done."""
        worked = self.core.step(wait=False)
        if self.core.cache is not None:
            self.core.cache.check_invariants()
        return worked

    def new_events(self) -> list[Event]:
        """Return the events that were not returned yet."""
        events = [event for _, event in self._events]
        self._events.clear()
        return events

    def run_until_idle(self) -> list[Event]:
        """Do all the work there is and return its events."""
        while self.step():
            pass
        return self.new_events()

    def _emit(self, event: Event) -> None:
        self._events.append((time.perf_counter(), event))
