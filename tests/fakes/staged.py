"""A StagedEngine on real processes, with helpers to wait for events and to harm its stages."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

import psutil

from engine.config import EngineConfig
from engine.events import Event, LoadModel, ModelFailed, ModelLoaded, Submit, UnloadModel
from engine.hosts.group import Limits
from engine.hosts.hostfile import Hosts
from engine.hosts.staged_engine import StagedEngine
from engine.problem import Problem
from engine.types import (
    ConversationId,
    ForcedReply,
    Message,
    Picture,
    Request,
    RequestId,
    Role,
    SamplingParams,
)

T = TypeVar("T", bound=Event)

LONG_TEXT = "one two three " * 2000  # a prompt that takes seconds
LONG = ForcedReply(text="boat " * 3000)  # a reply that takes seconds


class StagedRig:
    """An engine in stages, and its events in order."""

    def __init__(self, hosts: Hosts, limits: Limits | None = None, **options: Any) -> None:
        self.events: SimpleQueue[Event] = SimpleQueue()
        config = EngineConfig(
            use_openblas=False, cache_budget_bytes=1 << 28, saves_battery=False, **options
        )
        self.engine = StagedEngine(config, hosts, self.events.put, limits)
        self.engine.start()

    def load(self, path: Path) -> ModelLoaded | ModelFailed:
        self.engine.send(LoadModel(str(path)))
        return self.wait(ModelLoaded, ModelFailed)

    def reload(self, path: Path) -> None:
        """Start new stages without waiting for them."""
        self.engine.send(UnloadModel())
        self.engine.send(LoadModel(str(path)))

    def end_input(self, rank: int) -> None:
        """Close the standard input of a stage, which then ends with status 0."""
        life = self.engine._life  # pyright: ignore[reportPrivateUsage]
        assert life is not None
        stage = life.group._stages[rank]  # pyright: ignore[reportPrivateUsage]
        pipe = stage._process.stdin  # pyright: ignore[reportPrivateUsage]
        assert pipe is not None
        pipe.close()

    def submit(
        self,
        name: str,
        *,
        chat: str = "c",
        text: str = "one two three",
        forced: ForcedReply | None = None,
        pictures: tuple[Picture, ...] = (),
    ) -> None:
        request = Request(
            request_id=RequestId(name),
            conversation_id=ConversationId(chat),
            messages=(Message(role=Role.USER, content=text, pictures=pictures),),
            new_messages=frozenset({0}),
            sampling=SamplingParams(temperature=0.0),
            max_tokens=8 if forced is None else 100_000,
            forced=forced,
        )
        self.engine.send(Submit(request, time.perf_counter()))

    def wait(self, *kinds: type[T], timeout_s: float = 60) -> T:
        """Return the next event of one of the kinds. Skip all other events."""
        while True:
            event = self.events.get(timeout=timeout_s)
            if isinstance(event, kinds):
                return event

    @property
    def processes(self) -> list[psutil.Process]:
        """The running processes of stages, rank 0 first. Stages of an earlier engine are last."""
        ranks = self._ranks
        return sorted(
            (child for child in psutil.Process().children() if is_stage(child)),
            key=lambda one: ranks.get(one.pid, len(ranks)),
        )

    @property
    def _ranks(self) -> dict[int, int]:
        """The ranks of the engine's stages by process id. The ids may begin again at a low number."""
        life = self.engine._life  # pyright: ignore[reportPrivateUsage]
        if life is None:
            return {}
        stages = life.group._stages  # pyright: ignore[reportPrivateUsage]
        return {stage._process.pid: stage.rank for stage in stages}  # pyright: ignore[reportPrivateUsage]

    def close(self) -> None:
        self.engine.close()


def is_stage(process: psutil.Process) -> bool:
    """Return True if the process is a stage that has not ended."""
    try:
        return "stage" in process.cmdline()
    except psutil.NoSuchProcess:  # it has ended since it was found, or is a zombie
        return False


def harm(process: psutil.Process, signal_number: signal.Signals) -> None:
    os.kill(process.pid, signal_number)


def sentence_of(event: object) -> Problem:
    """Return the problem of an event that reports a failure."""
    problem = getattr(event, "problem", None)
    assert isinstance(problem, Problem), event
    return problem
