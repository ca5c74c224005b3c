"""`rejoinder serve`: a local server for other programs, without a window."""

from __future__ import annotations

import signal
import sys
import threading
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType

from app.cli.client import ProblemError, add_kv_bits
from app.cli.terminal import for_terminal
from app.paths import Paths
from app.server.access import ALL_ADDRESSES, LOOPBACK, PORT, Access, ServerAddress
from app.server.kept_replies import REPLIES_FILE
from app.server.key import KEY_FILE, kept_key
from app.server.report import Report
from app.store.lock import InstanceLock
from app.words import server as words
from engine.clients import Clients
from engine.config import EngineConfig
from engine.engine import Engine
from engine.events import Event, ModelFacts, ModelFailed, ModelLoaded
from engine.problem import Problem

_HIGHEST_PORT = 65_535
# Seconds after which the engine thread lets the thread of the server run while both compute. With
# Python's default of 5 ms, each step of a request may wait that long.
_SWITCH_S = 0.0002


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--port", type=_port, default=PORT, help=f"default: {PORT}")
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


def run(args: Namespace, model: Path, paths: Paths) -> int:
    """Serve until a signal ends the process. Return the exit status.

    Raises:
        AlreadyRunningError: a window is open on the data folder.
        ListenError: the address can't be used.
        ProblemError: the model can't be loaded.
    """
    with InstanceLock(paths.data_dir):
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
        _serve(config, model, address, replies, is_verbose=bool(args.verbose))
    return 0


def _serve(
    config: EngineConfig, model: Path, address: ServerAddress, replies: Path, *, is_verbose: bool
) -> None:
    # Imported late: the other commands don't need the libraries of the server.
    from app.server.running import RunningServer  # noqa: PLC0415

    loaded: Future[ModelFacts | Problem] = Future()

    def on_event(event: Event) -> None:
        if loaded.done():
            return
        match event:
            case ModelLoaded(facts):
                loaded.set_result(facts)
            case ModelFailed(_, problem):
                loaded.set_result(problem)
            case _:
                pass

    sys.setswitchinterval(_SWITCH_S)
    clients = Clients(on_event)
    engine = Engine(config, clients.emit)
    report = partial(print_report, is_verbose=is_verbose)
    engine.start()
    try:
        engine.load_model(str(model))
        result = loaded.result()
        if isinstance(result, Problem):
            raise ProblemError(result)
        server = RunningServer(engine, clients, address, report, replies)
        try:
            announce(server.url, result, address)
            _wait_for_signal()
        finally:
            server.stop()
    finally:
        engine.close()


def announce(url: str, model: ModelFacts, address: ServerAddress) -> None:
    if not address.is_local:
        print(words.open_to_network(address.host, needs_key=bool(address.access.key)))
    print(words.ready(f"{url}/v1", model.title))
    if address.access.key:
        print(words.key_is(address.access.key))
    sys.stdout.flush()


def _wait_for_signal() -> None:
    ended = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        ended.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    ended.wait()


def print_report(report: Report, *, is_verbose: bool) -> None:
    """Print what a request cost. Texts of messages are shown only with --verbose."""
    lines = [report.line]
    if is_verbose and report.changed_line:
        lines.append(report.changed_line)
    # Ignore a closed pipe: requests are answered all the same.
    with suppress(OSError):
        print(for_terminal("\n".join(lines)), flush=True)
