"""A blocking interface to the engine, for commands without a window. No Qt.

The engine runs on its own thread. A command to the engine returns nothing; its result arrives later
as an event. Clients queue these events. To get a result, a caller sends a command, then
calls next_event() until the result arrives. load_model() is an example. answer() waits for the
answer of a question.
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections import deque
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Protocol, Self, TypeVar, cast

from app.paths import make_paths
from engine.commands import Asked, EngineCommands
from engine.config import EngineConfig
from engine.events import Answered, Event, ModelFacts, ModelFailed, ModelLoaded, ModelLoading
from engine.hosts.hostfile import Hosts
from engine.hosts.switched_engine import SwitchedEngine
from engine.problem import Problem
from engine.types import MAX_DRAFTS

A = TypeVar("A")


class ProblemError(Exception):
    """An error that ends a terminal command. `problem` has the message for the user."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


class EngineClient(EngineCommands, Protocol):
    """The interface of an engine with blocking methods that return its events and answers."""

    def next_event(self) -> Event: ...

    def answer(self, asked: Asked[A]) -> A:
        """Wait for the answer of a question. next_event() then returns the events before it.

        Raises:
            ProblemError: there is no answer.
        """
        ...


class QueuedEngine(SwitchedEngine):
    """An engine that queues its events until next_event() fetches them.

    Entering the object as a context manager starts the engine; leaving it ends the engine.
    """

    def __init__(self, config: EngineConfig, hosts: Hosts | None = None) -> None:
        """Create an engine in the stages `hosts`. None: in a thread of this process."""
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._held: deque[Event] = deque()  # events that came before an answer
        super().__init__(config, self._events.put, hosts=hosts)

    def next_event(self) -> Event:
        return self._held.popleft() if self._held else self._events.get()

    def answer(self, asked: Asked[A]) -> A:
        while True:
            match self._events.get():
                case Answered(question_id, answer) if question_id == asked.question_id:
                    if isinstance(answer, Problem):
                        raise ProblemError(answer)
                    return cast("A", answer)
                case event:
                    self._held.append(event)

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


class EngineRuns:
    """Engines with the same configuration, one after the other. Leaving the context ends the last.

    Args:
        config: the settings of the engines.
        hosts: the stages of the model; None: the engine runs in this process.
    """

    def __init__(self, config: EngineConfig, hosts: Hosts | None = None) -> None:
        self._config = config
        self._hosts = hosts
        self._running: QueuedEngine | None = None

    def start(self) -> EngineClient:
        """End the engine that runs, and return a new one. The old one first writes its state."""
        self._end()
        self._running = QueuedEngine(self._config, self._hosts)
        self._running.start()
        return self._running

    def _end(self) -> None:
        if self._running is not None:
            self._running.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()


def add_engine_options(parser: ArgumentParser) -> None:
    """Add the command-line options from which engine_config() makes an EngineConfig."""
    parser.add_argument("--cache-bytes", type=int, help="bytes for cached chats")
    add_kv_bits(parser)
    parser.add_argument(
        "--reference-blas", action="store_true", help="without OpenBLAS: slow, sums in one order"
    )
    add_speculation(parser, "off")


def engine_config(args: Namespace, *, idle_work: bool) -> EngineConfig:
    """Build an engine configuration from the command-line options of a benchmark.

    Battery saving is off, so that the figures are the same on battery and on mains power. State is
    written to disk without a rest: a step `idle` stands for a pause. A piece of work may last a
    day, because a check runs a whole prompt in one pass, which can take minutes.
    """
    return EngineConfig(
        cache_budget_bytes=args.cache_bytes,
        kv_bits=args.kv_bits,
        use_openblas=not args.reference_blas,
        idle_work=idle_work,
        saves_battery=False,
        disk_folder=state_folder(args),
        disk_rest_s=0.0,
        blocked_after_s=24 * 3600.0,
    )


def state_folder(args: Namespace) -> Path | None:
    """Return the folder of cached state. Without --data-dir, each run starts without such state."""
    return make_paths(args.data_dir).state_dir if args.data_dir is not None else None


def add_speculation(parser: ArgumentParser, default: str) -> None:
    """Add the option --speculation, whose value is Request.max_drafts."""
    parser.add_argument(
        "--speculation",
        type=_max_drafts,
        default=default,
        metavar="off|auto|N",
        help=f"verify N drafted tokens in a pass where there are as many, at most {MAX_DRAFTS},"
        f" or as many as are expected to be fastest (default: {default})",
    )


def _max_drafts(text: str) -> int | None:
    if text == "auto":
        return None
    number = 0 if text == "off" else int(text)
    if not 0 <= number <= MAX_DRAFTS:
        raise ArgumentTypeError(f"{text} is not between 0 and {MAX_DRAFTS}")
    return number


def add_kv_bits(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--kv-bits", type=int, choices=(4, 8), help="keep attention K/V quantised (default: not)"
    )


def load_model(
    client: EngineClient,
    path: Path,
    on_progress: Callable[[ModelLoading], None],
    *,
    awaits_tests: bool = True,
) -> ModelFacts:
    """Load a model folder and wait until the model is ready.

    awaits_tests: True: also wait for the idle work after the load, which tests the model's faster
        ways. The passes of later requests then do not depend on the moment.

    Raises:
        ProblemError: the model could not be loaded.
    """
    client.load_model(str(path))
    while True:
        match client.next_event():
            case ModelLoaded(facts):
                if awaits_tests:
                    client.answer(client.await_idle())
                return facts
            case ModelFailed(_, problem):
                raise ProblemError(problem)
            case ModelLoading() as loading:
                on_progress(loading)
            case _:
                pass
