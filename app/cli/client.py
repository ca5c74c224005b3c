"""The engine as commands use it: send, then wait for what comes back. No Qt."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Protocol, Self

from engine.commands import EngineCommands
from engine.config import EngineConfig
from engine.engine import Engine
from engine.events import Event, ModelFailed, ModelLoaded, ModelLoading
from engine.types import ModelFacts, Problem


class ProblemError(Exception):
    """A problem to be told to the person; the command ends."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


class EngineClient(EngineCommands, Protocol):
    """Commands in, events out, one after the other."""

    def next_event(self) -> Event: ...


class ThreadedClient(Engine):
    """An engine that queues its events; a context manager that starts and ends its thread."""

    def __init__(self, config: EngineConfig) -> None:
        self._events: SimpleQueue[Event] = SimpleQueue()
        super().__init__(config, self._events.put)

    def next_event(self) -> Event:
        return self._events.get()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def add_engine_options(parser: ArgumentParser) -> None:
    """Of a benchmark; see engine_config."""
    parser.add_argument("--cache-bytes", type=int, help="bytes for cached conversations")
    add_kv_bits(parser)
    parser.add_argument(
        "--reference-blas", action="store_true", help="without OpenBLAS: slow, sums in one order"
    )


def engine_config(args: Namespace, *, idle_work: bool) -> EngineConfig:
    """As the options of a benchmark say. Its figures depend on no plug."""
    return EngineConfig(
        cache_budget_bytes=args.cache_bytes,
        kv_bits=args.kv_bits,
        use_openblas=not args.reference_blas,
        idle_work=idle_work,
        saves_battery=False,
    )


def add_kv_bits(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--kv-bits", type=int, choices=(4, 8), help="keep attention K/V quantised (default: not)"
    )


def load_model(
    client: EngineClient, path: Path, on_progress: Callable[[ModelLoading], None]
) -> ModelFacts:
    """Load a model folder and wait until it answers.

    Raises:
        ProblemError: it could not be loaded.
    """
    client.load_model(str(path))
    while True:
        match client.next_event():
            case ModelLoaded(facts):
                return facts
            case ModelFailed(_, problem):
                raise ProblemError(problem)
            case ModelLoading() as loading:
                on_progress(loading)
            case _:
                pass
