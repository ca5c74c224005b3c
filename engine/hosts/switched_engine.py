"""The engine of the app: in a thread of this process, or in stages on several Macs.

`use_hosts` replaces one by the other. The old engine cuts its requests off, which finish with their
text so far. Commands that arrive meanwhile wait for the new engine, which gets the settings of the
old.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from typing_extensions import override

from engine.commands import EngineCommands
from engine.config import EngineConfig
from engine.early_reading import EarlyReading
from engine.engine import Engine
from engine.events import Command, Event
from engine.hosts.hostfile import Hosts
from engine.hosts.staged_engine import StagedEngine
from engine.wanted import Wanted


class SwitchedEngine(EngineCommands):
    """One engine at a time. All methods may be called from any thread.

    Args:
        config: the settings of the engine.
        on_event: called with each event, on a thread of the engine.
        early_reading: the reading of the first model's files, if it has begun already.
        hosts: the stages of the first engine. None: it runs in this process.
    """

    def __init__(
        self,
        config: EngineConfig,
        on_event: Callable[[Event], None],
        early_reading: EarlyReading | None = None,
        hosts: Hosts | None = None,
    ) -> None:
        self._config = config
        self._on_event = on_event
        self._early_reading = early_reading
        self._lock = threading.Lock()  # protects the fields below
        self._hosts = hosts
        self._engine: Engine | StagedEngine | None = None  # None before the start, and in a switch
        self._waiting: list[Command] = []  # commands while there is no engine
        self._switch: threading.Thread | None = None
        self._wanted = Wanted.of(config)  # the settings while there is no engine to hold them

    def start(self) -> None:
        """Start the engine and return at once."""
        with self._lock:
            self._begin()

    @property
    def has_lost_stages(self) -> bool:
        """True if no stages run: a fault ends them, and only a LoadModel starts them again."""
        return isinstance(self._engine, StagedEngine) and not self._engine.is_running

    @override
    def send(self, command: Command) -> None:
        """Pass a command to the engine. During a switch it waits for the next engine."""
        with self._lock:
            if self._engine is None:
                self._waiting.append(command)
            else:
                self._engine.send(command)

    @override
    def want(self, change: Callable[[Wanted], Wanted]) -> None:
        with self._lock:
            if self._engine is None:
                self._wanted = change(self._wanted)
            else:
                self._engine.want(change)

    def close(self, timeout_s: float = 30.0) -> None:
        """Cut off running requests, then end the engine. See Engine.close for timeout_s."""
        until = time.monotonic() + timeout_s
        switch, self._switch = self._switch, None
        if switch is not None:
            switch.join(timeout_s)
        engine = self._engine
        if engine is not None:
            engine.close(max(0.0, until - time.monotonic()))

    def use_hosts(self, hosts: Hosts | None) -> None:
        """Run the next model on these hosts, or in this process if there are none.

        Return at once. A LoadModel command must follow, unless the engine has not started yet.
        """
        with self._lock:
            self._hosts = hosts
            engine, self._engine = self._engine, None
            if engine is not None:
                self._wanted = engine.wanted
                self._switch = threading.Thread(
                    target=self._replace, args=(engine,), name="engine switch"
                )
                self._switch.start()

    def _replace(self, engine: Engine | StagedEngine) -> None:
        """Close the old engine, then start one for the newest hosts. Runs on its own thread."""
        engine.close()
        with self._lock:
            self._begin()

    def _begin(self) -> None:
        """Start an engine with its settings and the waiting commands. The lock is held."""
        if self._hosts is None:
            engine = Engine(self._config, self._on_event, self._wanted, self._early_reading)
        else:
            engine = StagedEngine(self._config, self._hosts, self._on_event, wanted=self._wanted)
        engine.start()
        for command in self._waiting:
            engine.send(command)
        self._waiting = []
        self._engine = engine
