"""The real engine without its thread: commands are carried out when an event is asked for."""

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

    def run_until_idle(self) -> list[Event]:
        """All events until nothing is left to do; invariants are checked after every step."""
        while self.core.step(wait=False):
            if self.core.cache is not None:
                self.core.cache.check_invariants()
        events = [event for _, event in self._events]
        self._events.clear()
        return events

    def _emit(self, event: Event) -> None:
        self._events.append((time.perf_counter(), event))
