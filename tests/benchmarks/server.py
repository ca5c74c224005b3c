"""Answers over HTTP beside answers of the same engine alone, with 1, 4 and 8 clients.

    python -m tests.benchmarks.server [--model DIR] [--clients 1 4 8] [--tokens 64] [--pairs 3]

Prints one JSON line for each number of clients: `throughput`, the tokens per second over HTTP as a ratio
to the engine alone, as the median of pairs with all ratios; and `overhead_ms`, from the request to the
first byte of the text, less the time of the engine until it has a text (p50 and p95). Its first tokens
may have none: half a character is held back. Clients run in a process of their own, as they do in use. Without --model the model is a tiny random Qwen3.5, the worst case: nearly all of a
step is Python code, and the engine and the server share the interpreter. For a real model on Linux set
LD_PRELOAD=libopenblas.so.0.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from urllib.parse import urlsplit

from typing_extensions import override

from app.server.access import Access, ServerAddress
from app.server.report import Report
from app.server.running import RunningServer
from app.thread_switching import switch_threads_often
from engine.clients import Clients
from engine.config import EngineConfig
from engine.engine import Engine
from engine.events import (
    Command,
    Event,
    ModelFailed,
    ModelLoaded,
    RequestFailed,
    RequestFinished,
    Submit,
    TextDelta,
)
from engine.types import ConversationId, Message, Request, RequestId, Role, SamplingParams
from tests.benchmarks.many_chats import endless_model

_PATH = "/v1/chat/completions"
REST_S = 12  # time after the load in which the engine tests faster ways. A request waits for a step of it.


def _question(number: int) -> str:
    return f"{number}: tell me a long story about a fox."


@dataclass(frozen=True, slots=True)
class Timing:
    """The answers of all clients."""

    tokens_per_s: float
    firsts_ms: list[float]  # from each request to its first text, by the number of the client


def over_http(url: str, num_clients: int, num_tokens: int) -> Timing:
    """Let a process with `num_clients` clients ask at once."""
    command = [sys.executable, "-m", "tests.benchmarks.server", "--ask", url]
    command += ["--clients", str(num_clients), "--tokens", str(num_tokens)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return Timing(**json.loads(ran.stdout))


def ask_all(url: str, num_clients: int, num_tokens: int) -> Timing:
    """Ask over HTTP with several threads of this process, which have used their code before."""
    with ThreadPoolExecutor(num_clients) as pool:
        list(pool.map(partial(_ask, url, 1), range(num_clients)))
        start = time.perf_counter()
        answers = list(pool.map(partial(_ask, url, num_tokens), range(num_clients)))
        seconds = time.perf_counter() - start
    return Timing(sum(n for n, _ in answers) / seconds, [first_ms for _, first_ms in answers])


def _ask(url: str, num_tokens: int, number: int) -> tuple[int, float]:
    """Return the number of tokens of an answer, and the milliseconds until its first text."""
    connection = HTTPConnection(urlsplit(url).netloc)
    body = {
        "messages": [{"role": "user", "content": _question(number)}],
        "max_tokens": num_tokens,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    start = time.perf_counter()
    connection.request("POST", _PATH, json.dumps(body))
    first_ms = 0.0
    usage: dict[str, Any] = {}
    for line in connection.getresponse():
        if not line.startswith(b"data: {"):
            continue
        data = json.loads(line.removeprefix(b"data: "))
        if not first_ms and data["choices"] and data["choices"][0]["delta"].get("content"):
            first_ms = (time.perf_counter() - start) * 1e3
        usage = data.get("usage") or usage
    connection.close()
    return usage["completion_tokens"], first_ms


class _Silent:
    """A watcher of the server that prints nothing."""

    def report(self, report: Report) -> None: ...

    def note_open(self, num_open: int) -> None: ...


class _TimedEngine(Engine):
    """An engine that notes when each question was submitted, and when its answer had a first text."""

    def __init__(self, on_event: Callable[[Event], None]) -> None:
        super().__init__(EngineConfig(saves_battery=False, idle_work=False), self._note)
        self._pass_on = on_event
        self._submitted: dict[RequestId, tuple[str, float]] = {}
        self.firsts_ms: dict[str, float] = {}  # by question, of the newest answers

    @override
    def send(self, command: Command) -> None:
        if isinstance(command, Submit):
            question = command.request.messages[-1].content
            self._submitted[command.request.request_id] = question, time.perf_counter()
        super().send(command)

    def _note(self, event: Event) -> None:
        if isinstance(event, TextDelta) and event.request_id in self._submitted:
            question, start = self._submitted.pop(event.request_id)
            self.firsts_ms[question] = (time.perf_counter() - start) * 1e3
        self._pass_on(event)


class Bench:
    """An engine with a server."""

    def __init__(self, model: Path) -> None:
        self._events: SimpleQueue[Event] = SimpleQueue()
        clients = Clients(self._events.put)
        self._engine = _TimedEngine(clients.emit)
        self._engine.start()
        self._engine.load_model(str(model))
        self._wait_for(1, ModelLoaded)
        address = ServerAddress(access=Access(key=""))
        self._server = RunningServer(self._engine, clients, address, _Silent())
        self._num_asked = 0
        time.sleep(REST_S)  # noqa: TID251 — the engine does not say that its tests have ended

    def close(self) -> None:
        self._server.stop()
        self._engine.close()

    def alone(self, num_clients: int, num_tokens: int) -> float:
        """Return the tokens per second of the engine without a server."""
        start = time.perf_counter()
        for number in range(num_clients):
            self._num_asked += 1
            self._engine.submit(
                Request(
                    request_id=RequestId(f"{self._num_asked}"),
                    conversation_id=ConversationId(f"{number}"),
                    messages=(Message(role=Role.USER, content=_question(number)),),
                    new_messages=frozenset({0}),
                    sampling=SamplingParams(temperature=0.0),
                    max_tokens=num_tokens,
                    max_drafts=None,
                )
            )
        ended = self._wait_for(num_clients, RequestFinished)
        tokens = sum(end.usage.output_tokens for end in ended if isinstance(end, RequestFinished))
        return tokens / (time.perf_counter() - start)

    def compare(self, num_clients: int, num_tokens: int, num_pairs: int) -> dict[str, object]:
        """Return the figures of a number of clients."""
        url = self._server.url
        self.alone(num_clients, num_tokens)  # both read the prompts before they are timed
        over_http(url, num_clients, num_tokens)
        ratios: list[float] = []
        overheads: list[float] = []
        for _ in range(num_pairs):
            alone = self.alone(num_clients, num_tokens)
            timing = over_http(url, num_clients, num_tokens)
            ratios.append(round(timing.tokens_per_s / alone, 3))
            overheads += [
                first_ms - self._engine.firsts_ms[_question(number)]
                for number, first_ms in enumerate(timing.firsts_ms)
            ]
        return {
            "clients": num_clients,
            "throughput": round(statistics.median(ratios), 3),
            "ratios": ratios,
            "overhead_ms": {
                "p50": round(statistics.median(overheads), 2),
                "p95": round(sorted(overheads)[round(0.95 * (len(overheads) - 1))], 2),
            },
        }

    def _wait_for(self, number: int, kind: type[Event]) -> list[Event]:
        """Return the next events of a kind."""
        found: list[Event] = []
        while len(found) < number:
            event = self._events.get()
            assert not isinstance(event, (ModelFailed, RequestFailed)), event
            if isinstance(event, kind):
                found.append(event)
        return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="server", description="Measure the local server.")
    parser.add_argument("--model", type=Path, metavar="DIR")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4, 8])
    parser.add_argument("--tokens", type=int, default=64, help="of each answer")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--ask", metavar="URL", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.ask:
        timing = ask_all(args.ask, args.clients[0], args.tokens)
        print(json.dumps({"tokens_per_s": timing.tokens_per_s, "firsts_ms": timing.firsts_ms}))
        return
    switch_threads_often()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args.model or endless_model(Path(folder)))
        try:
            for num_clients in args.clients:
                print(json.dumps(bench.compare(num_clients, args.tokens, args.pairs)), flush=True)
        finally:
            bench.close()


if __name__ == "__main__":
    main()
