"""The chat-tree benchmark on Rejoinder's engine and on other servers, in one run and one table.

    python -m tests.benchmarks.chat_tree_peers --model DIR [--replies own] [--cold 3] [--size 1]
        [--peer NAME=COMMAND ...]

Rejoinder runs twice: without idle work, and with all idle work after every step. Its own server can be
a peer ("served" below): it gets the texts over HTTP, without ids. Without --peer the
other server is mlx_lm.server, which is installed in this environment. COMMAND contains {model} and
{port}. rapid-mlx needs an environment of its own (uv venv DIR; uv pip install --python DIR
rapid-mlx "mlx[cpu]"). Examples:

    --peer "served={python} -P -m app serve --no-key --model {model} --port {port}"
    --peer "mlx_lm.server={python} -m mlx_lm server --model {model} --port {port}"
    --peer "rapid-mlx=DIR/bin/rapid-mlx serve {model} --port {port}"

Every server starts offline in an empty home folder. On Linux it uses OpenBLAS, as Rejoinder does.
On a CPU give all engines a float32 model:

    python -m mlx_lm convert -d --dtype float32 --hf-path DIR --mlx-path OUT

JSON lines go to stdout, the table to stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from app.cli.tree import report
from app.cli.tree.measure import StepCost
from app.cli.tree.options import (
    add_scenario_arguments,
    run,
    scenario_of,
    scenario_options,
)
from tests.benchmarks.chat_tree_client import Endpoint, EndpointError
from tests.benchmarks.chat_tree_endpoint import EndpointEngine
from tests.benchmarks.chat_tree_tokens import ModelTokens

OWN, OWN_IDLE = "rejoinder", "rejoinder, idle"
# Time limits for the start and the shutdown of a server, in seconds.
START_S = 300
STOP_S = 30


@dataclass(frozen=True, slots=True)
class Peer:
    """A server to compare with, and the command that starts it."""

    name: str
    command: tuple[str, ...]  # words of the command, which may contain {python}, {model} and {port}

    def filled(self, *, model: str, port: int) -> list[str]:
        values = {"python": sys.executable, "model": model, "port": str(port)}
        return [word.format(**values) for word in self.command]


MLX_LM = Peer(
    "mlx_lm.server",
    ("{python}", "-m", "mlx_lm", "server", "--model", "{model}", "--port", "{port}"),
)


def peer_of(argument: str) -> Peer:
    """Parse NAME=COMMAND.

    A missing program is reported at once, because the server may start only hours later.
    """
    name, _, command = argument.partition("=")
    if name in ("", OWN, OWN_IDLE):
        raise argparse.ArgumentTypeError(f"{argument} names no other engine")
    try:
        peer = Peer(name, tuple(shlex.split(command)))
        program, *_ = peer.filled(model="model", port=0)
    except (KeyError, IndexError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{command!r} is no command: {error!r}") from error
    if shutil.which(program) is None:
        raise argparse.ArgumentTypeError(f"there is no program {program}")
    return peer


def main() -> int:
    parser = _parser()
    args = parser.parse_args()
    engines = {OWN: partial(own_run, args, idle=False), OWN_IDLE: partial(own_run, args, idle=True)}
    for peer in args.peer or [MLX_LM]:
        if peer.name in engines:
            parser.error(f"there are two peers named {peer.name}")
        engines[peer.name] = partial(peer_run, peer, args)
    runs: dict[str, list[StepCost]] = {}
    for name, play in engines.items():
        try:
            runs[name] = play()
        except EndpointError as error:
            print(f"{name}: {error}", file=sys.stderr)
    if runs:
        print(report.comparison(runs), file=sys.stderr)
    return 0 if len(runs) == len(engines) else 1


def own_run(args: argparse.Namespace, *, idle: bool) -> list[StepCost]:
    """Play the scenario on Rejoinder in a new process, to measure the memory of this process.

    Raises:
        EndpointError: the process ended before the last step.
    """
    command = [
        sys.executable,
        "-P",
        "-m",
        "app",
        "bench",
        "tree",
        "--json",
        "--model",
        str(args.model),
    ]
    command += scenario_options(args)
    names = [field.name for field in fields(StepCost)]
    costs: list[StepCost] = []
    with tempfile.TemporaryDirectory() as data:
        command += ["--data-dir", data, *(["--idle"] if idle else [])]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                print(line, end="", flush=True)
                values: dict[str, Any] = json.loads(line)
                if "step" in values:
                    costs.append(StepCost(**{name: values[name] for name in names}))
    if len(costs) < len(scenario_of(args).steps):
        raise EndpointError(f"ended with status {process.returncode} after {len(costs)} steps")
    return costs


def peer_run(peer: Peer, args: argparse.Namespace) -> list[StepCost]:
    """Start a server, play the scenario on it, and end the server.

    Raises:
        EndpointError: the server did not start, or can't be measured.
    """
    port = free_port()
    scenario = scenario_of(args)
    with serving(peer.filled(model=str(args.model), port=port), port) as pid:
        engine = EndpointEngine(
            Endpoint(f"http://127.0.0.1:{port}/v1", str(args.model)),
            scenario,
            args.replies,
            ModelTokens(args.model),
            server_pid=pid,
        )
        return run(peer.name, engine, scenario, args)


@contextmanager
def serving(command: list[str], port: int) -> Generator[int]:
    """Start a server and yield its process id as soon as it accepts connections on the port.

    Raises:
        EndpointError: the server did not start.
    """
    with tempfile.TemporaryDirectory() as home:
        log = Path(home) / "server.log"
        with log.open("wb") as output:
            try:
                process = subprocess.Popen(
                    command, env=_environment(home), stdout=output, stderr=subprocess.STDOUT
                )
            except OSError as error:
                raise EndpointError(f"the server can't be started: {error}") from error
            try:
                _wait_for(process, port, log)
                yield process.pid
            finally:
                process.terminate()
                try:
                    process.wait(STOP_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def _environment(home: str) -> dict[str, str]:
    own = {"HOME": home, "HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1", "PYTHONUNBUFFERED": "1"}
    if sys.platform == "linux":
        own["LD_PRELOAD"] = "libopenblas.so.0"
    return os.environ | own


def _wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    for _ in range(2 * START_S):
        with socket.socket() as connection:
            if connection.connect_ex(("127.0.0.1", port)) == 0:
                return
        try:
            process.wait(0.5)
        except subprocess.TimeoutExpired:
            continue
        said = log.read_text(encoding="utf-8", errors="replace").strip()[-500:]
        raise EndpointError(f"the server ended with status {process.returncode}: {said}")
    raise EndpointError(f"the server did not listen on port {port} within {START_S} s")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="chat_tree_peers", description="Compare chat engines.")
    parser.add_argument("--model", type=Path, required=True, metavar="DIR", help="a model folder")
    parser.add_argument(
        "--peer", action="append", type=peer_of, metavar="NAME=COMMAND", help="see above"
    )
    add_scenario_arguments(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
