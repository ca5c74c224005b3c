"""`rejoinder serve`: a local server for other programs, without a window."""

from __future__ import annotations

import signal
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from types import FrameType

from app.cli.client import ProblemError, add_kv_bits
from app.cli.terminal import for_terminal
from app.paths import Paths
from app.server.access import ALL_ADDRESSES, LOOPBACK, Access, ServerAddress
from app.server.kept_replies import REPLIES_FILE
from app.server.key import KEY_FILE, kept_key
from app.server.model_choice import Choice
from app.server.report import Report
from app.settings import SERVER_PORT
from app.store.errors import AlreadyRunningError
from app.store.lock import InstanceLock
from app.thread_switching import switch_threads_often
from app.words import server as words
from engine.catalog.card import ModelCard
from engine.clients import Clients
from engine.config import EngineConfig
from engine.events import Event, ModelFacts, ModelFailed, ModelLoaded
from engine.hosts.switched_engine import SwitchedEngine
from engine.problem import Problem

_HIGHEST_PORT = 65_535
# The result of each load, the folder of each model that a request has chosen, or None once a signal
# has come
_Results = SimpleQueue[ModelFacts | Problem | Path | None]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--port", type=_port, default=SERVER_PORT, help=f"default: {SERVER_PORT}")
    parser.add_argument(
        "--host", default=LOOPBACK, help=f"address to listen on (default: {LOOPBACK})"
    )
    parser.add_argument("--key", help="the API key (default: one that is kept in the data folder)")
    parser.add_argument(
        "--no-key", action="store_true", help="let every program on this computer use the server"
    )
    parser.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="let web pages of this origin use the server, such as app://obsidian.md",
    )
    parser.add_argument(
        "--choose-models",
        action="store_true",
        help="load another model if a request names it and no answer is written or waits",
    )
    add_kv_bits(parser)


def _port(text: str) -> int:
    """Return the number of a port.

    Raises:
        ArgumentTypeError, ValueError: it is none.
    """
    port = int(text)
    if not 0 <= port <= _HIGHEST_PORT:
        raise ArgumentTypeError(words.wrong_port(_HIGHEST_PORT))
    return port


def run(args: Namespace, model: Path, cards: tuple[ModelCard, ...], paths: Paths) -> int:
    """Serve until a signal ends the process. Return the exit status.

    Args:
        args: the arguments.
        model: folder of the model that is loaded first.
        cards: the models that requests choose from with --choose-models.
        paths: the folders of the app.

    Raises:
        AlreadyRunningError: a window is open on the data folder.
        ListenError: the address can't be used.
        ProblemError: the model can't be loaded.
    """
    with _locked(paths.data_dir):
        key = "" if args.no_key else args.key or kept_key(paths.data_dir / KEY_FILE)
        hosts = () if args.host == LOOPBACK else (args.host,)
        access = Access(
            key=key,
            hosts=hosts,
            has_any_address=args.host in ALL_ADDRESSES,
            origins=frozenset(args.allow_origin),
        )
        config = EngineConfig(
            kv_bits=args.kv_bits,
            disk_folder=paths.state_dir,
            abilities_folder=paths.abilities_dir,
        )
        address = ServerAddress(host=args.host, port=args.port, access=access)
        replies = paths.cache_dir / REPLIES_FILE
        offered = cards if args.choose_models else ()
        _serve(config, model, offered, address, replies, is_verbose=bool(args.verbose))
    return 0


@contextmanager
def _locked(data_dir: Path) -> Generator[None]:
    """Lock the data folder.

    Raises:
        AlreadyRunningError: a window is open on it. The advice names the server of the window.
    """
    lock = InstanceLock(data_dir)
    try:
        lock.acquire()
    except AlreadyRunningError as error:
        advice = words.SERVE_BESIDE_WINDOW
        raise AlreadyRunningError(error.problem.cause, advice=advice) from error
    try:
        yield
    finally:
        lock.release()


def _serve(
    config: EngineConfig,
    model: Path,
    cards: tuple[ModelCard, ...],
    address: ServerAddress,
    replies: Path,
    *,
    is_verbose: bool,
) -> None:
    # Imported late: the other commands don't need the libraries of the server.
    from app.server.running import RunningServer  # noqa: PLC0415

    results: _Results = SimpleQueue()

    def on_event(event: Event) -> None:
        match event:
            case ModelLoaded(facts):
                results.put(facts)
            case ModelFailed(_, problem):
                results.put(problem)
            case _:
                pass

    switch_threads_often()
    _at_signal(lambda: results.put(None))
    clients = Clients(on_event)
    engine = SwitchedEngine(config, clients.emit)
    engine.start()
    try:
        facts = _loaded(engine, model, results)
        if facts is None:
            return
        watcher = Terminal(is_verbose=is_verbose)
        choice = Choice(lambda path, _refuse: results.put(path), cards) if cards else None
        server = RunningServer(engine, clients, address, watcher, replies, choice)
        try:
            announce(server.url, facts, address)
            while (result := results.get()) is not None:
                if isinstance(result, Path):
                    engine.load_model(str(result))
                # The engine thread was replaced, or the chosen model can't be loaded.
                if isinstance(result, Problem):
                    print(for_terminal(str(result)), file=sys.stderr, flush=True)
                    if _loaded(engine, model, results) is None:
                        return
        finally:
            server.stop()
    finally:
        engine.close()


def _loaded(engine: SwitchedEngine, model: Path, results: _Results) -> ModelFacts | None:
    """Load a model. Return None if a signal came.

    Raises:
        ProblemError: the model can't be loaded.
    """
    engine.load_model(str(model))
    while isinstance(result := results.get(), Path):
        pass  # A request has chosen a model meanwhile. It gets an error once this one is loaded.
    if isinstance(result, Problem):
        raise ProblemError(result)
    return result


def announce(url: str, model: ModelFacts, address: ServerAddress) -> None:
    if not address.is_local:
        print(words.open_to_network(address.host, needs_key=bool(address.access.key)))
    print(words.ready(f"{url}/v1", model.title))
    if address.access.key:
        print(words.key_is(address.access.key))
    sys.stdout.flush()


def _at_signal(end: Callable[[], None]) -> None:
    """Call `end` when the user or the system ends the process."""

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        end()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)


class Terminal:
    """Prints what each request cost. Texts of messages are shown only with --verbose."""

    def __init__(self, *, is_verbose: bool) -> None:
        self._is_verbose = is_verbose

    def report(self, report: Report) -> None:
        lines = [report.line]
        if self._is_verbose and report.changed_line:
            lines.append(report.changed_line)
        # Ignore a closed pipe: requests are answered all the same.
        with suppress(OSError):
            print(for_terminal("\n".join(lines)), flush=True)

    def note_open(self, num_open: int) -> None:
        """Print nothing: the lines of the requests say enough."""
